// Times as people say them; the exact one is in the tooltip.

import { signal } from "@preact/signals";

const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);

/** The present, as whoever shows it is told of it: what has just happened does not lie ahead. */
function present(): number {
  return Math.max(now.value, Date.now());
}

export function ago(at: string | number, from: number = present()): string {
  const seconds = Math.round((from - (typeof at === "number" ? at : Date.parse(at))) / 1000);
  if (Number.isNaN(seconds)) return "?";
  const [size, tail] = seconds < 0 ? [-seconds, "from now"] : [seconds, "ago"];
  if (size < 10) return tail === "ago" ? "just now" : "in a moment";
  const said = span(size * 1000);
  return tail === "ago" ? `${said} ago` : `in ${said}`;
}

/** A length of time in one or two units. */
export function span(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(at)}
    </time>
  );
}
