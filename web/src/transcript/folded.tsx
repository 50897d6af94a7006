// Long text stays folded behind one line that says how much there is.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { bytes, lines } from "../ui/numbers.ts";
import { Terminal } from "../ui/rich.tsx";
import { oneLine } from "./headlines.ts";

const SHORT_LINES = 4;
const SHORT_CHARACTERS = 400;
/** What is put on the page at once; the rest is behind a button. */
const PIECE = 20_000;

interface Props {
  text: string;
  label: ComponentChildren;
  failed?: boolean;
  /** Whether it is what a program wrote, with colours in it. */
  terminal?: boolean;
}

export function Folded({ text, label, failed = false, terminal = false }: Props) {
  const shown = useSignal(PIECE);
  const opened = useSignal(false);
  const size = lines(text);
  const look = failed ? "result bad" : "result";
  const body = (piece: string): ComponentChildren => (terminal ? <Terminal text={piece} /> : <pre>{piece}</pre>);
  if (size <= SHORT_LINES && text.length <= SHORT_CHARACTERS) {
    return (
      <div class={`${look} short`}>
        {label} {terminal ? body(text) : <span class="value">{text}</span>}
      </div>
    );
  }
  return (
    <details class={look} onToggle={(event) => (opened.value = event.currentTarget.open)}>
      <summary>
        {label} <span class="dim">{size}l · {bytes(text.length)} · </span>
        <span class="value">{oneLine(text, 100)}</span>
      </summary>
      {opened.value && body(text.slice(0, shown.value))}
      {opened.value && text.length > shown.value && (
        <button type="button" class="quiet" onClick={() => (shown.value = text.length)}>
          Show all {bytes(text.length)}
        </button>
      )}
    </details>
  );
}
