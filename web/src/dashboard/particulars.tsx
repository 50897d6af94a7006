// What an event says: one line of names and values, the whole of it behind that.

import { useSignal } from "@preact/signals";

/** The most characters of one value on the line. */
const VALUE = 80;
const LINE = 300;

function brief(data: Record<string, unknown>): string {
  const parts = Object.entries(data).map(([name, value]) => {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return `${name} ${text.length > VALUE ? `${text.slice(0, VALUE)}…` : text}`;
  });
  return parts.join(" · ").slice(0, LINE);
}

export function Particulars({ data }: { data: Record<string, unknown> }) {
  const opened = useSignal(false);
  return (
    <details onToggle={(event) => (opened.value = event.currentTarget.open)}>
      <summary>{brief(data) || "nothing more"}</summary>
      {opened.value && <pre>{JSON.stringify(data, null, 2)}</pre>}
    </details>
  );
}
