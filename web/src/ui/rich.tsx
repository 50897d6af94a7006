// Parts from the host as elements. Only what is in this table becomes an element, and only the
// attributes named here: there is no markup in between.

import { h, type VNode } from "preact";
import { LONGEST, shown } from "../api/render.ts";
import type { Node, Part } from "../api/types.ts";

const KNOWN = new Set([
  "a", "blockquote", "br", "code", "del", "em", "h4", "h5", "hr", "li", "ol", "p", "pre", "span",
  "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
]);

function element(part: Part, key: number): VNode | null {
  if (!KNOWN.has(part.tag)) return null;
  const looks: Record<string, unknown> = { key };
  if (typeof part.class === "string") looks.class = part.class;
  if (part.tag === "a" && typeof part.href === "string" && /^(https?|mailto):/i.test(part.href)) {
    Object.assign(looks, { href: part.href, title: part.href, rel: "noopener noreferrer nofollow", target: "_blank" });
  }
  return h(part.tag, looks, <Nodes nodes={part.inside ?? []} />);
}

export function Nodes({ nodes }: { nodes: Node[] }) {
  return <>{nodes.map((node, index) => (typeof node === "string" ? node : element(node, index)))}</>;
}

function Shown({ kind, text, class: look }: { kind: "markdown" | "terminal"; text: string; class: string }) {
  const nodes = text.length > LONGEST ? undefined : shown({ kind, text }).value?.nodes;
  return <div class={look}>{nodes === undefined ? <div class="plain">{text}</div> : <Nodes nodes={nodes} />}</div>;
}

/** Prose that an agent wrote. */
export function Markdown({ text }: { text: string }) {
  return <Shown kind="markdown" text={text} class="markdown" />;
}

/** What a program wrote to a terminal. */
export function Terminal({ text }: { text: string }) {
  return <Shown kind="terminal" text={text} class="terminal" />;
}
