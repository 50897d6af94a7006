// A tool that nobody knows: its arguments, and what it returned.

import { Folded } from "../folded.tsx";
import type { ToolResult } from "../rows.ts";
import type { Renderer } from "./tool.ts";

export function Arguments({ input }: { input: Record<string, unknown> }) {
  if (Object.keys(input).length === 0) return null;
  return (
    <details>
      <summary class="dim">arguments</summary>
      <pre>{JSON.stringify(input, null, 2)}</pre>
    </details>
  );
}

export function Plain({ result, terminal = false }: { result: ToolResult | undefined; terminal?: boolean }) {
  if (result === undefined) return null;
  return <Folded text={result.text || "(nothing)"} label={<span aria-hidden="true">←</span>} failed={result.failed} terminal={terminal} />;
}

export const Other: Renderer = ({ input, result }) => (
  <>
    <Arguments input={input} />
    <Plain result={result} terminal />
  </>
);
