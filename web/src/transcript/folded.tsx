// Long text stays folded behind one line that says how much there is.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { bytes, lines } from "../ui/numbers.ts";
import { oneLine } from "./tools.ts";

const SHORT_LINES = 4;
const SHORT_CHARACTERS = 400;
/** What is put on the page at once; the rest is behind a button. */
const PIECE = 20_000;

export function Folded({ text, label, open = false }: { text: string; label: ComponentChildren; open?: boolean }) {
  const shown = useSignal(PIECE);
  const size = lines(text);
  if (size <= SHORT_LINES && text.length <= SHORT_CHARACTERS) {
    return (
      <div class="short">
        {label} <span class="value">{text}</span>
      </div>
    );
  }
  return (
    <details open={open}>
      <summary>
        {label} <span class="dim">{size}l · {bytes(text.length)} · </span>
        <span class="value">{oneLine(text, 100)}</span>
      </summary>
      <pre>{text.slice(0, shown.value)}</pre>
      {text.length > shown.value && (
        <button type="button" class="quiet" onClick={() => (shown.value = text.length)}>
          Show all {bytes(text.length)}
        </button>
      )}
    </details>
  );
}
