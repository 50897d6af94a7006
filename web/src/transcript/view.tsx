// The rows on the screen: only a window of them, following the end unless the reader scrolled away.

import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Nothing } from "../ui/nothing.tsx";
import { RowMenu } from "./row-menu.tsx";
import { RowView } from "./row-view.tsx";
import type { Row, Transcript } from "./rows.ts";

/** How many rows are on the page at most, and how many come with a step upwards. */
const WINDOW = 200;
const STEP = 100;
const NEAR = 80;

interface Props {
  transcript: Transcript;
  version: Signal<number>;
  /** Whether the host has earlier events, and how to get them. */
  earlier: Signal<"none" | "some" | "loading">;
  load: () => Promise<void>;
  /** The address of an event. */
  link: (id: string) => string;
  /** The event to show first. */
  wanted: string | undefined;
  empty: string;
}

function matches(row: Row, wanted: string): boolean {
  return JSON.stringify(row).toLowerCase().includes(wanted);
}

export function TranscriptView({ transcript, version, earlier, load, link, wanted, empty }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const placed = useRef(0); // where the end was when it was last followed
  const following = useSignal(wanted === undefined);
  const last = useSignal(0); // the end of the window, when not following
  const seen = useSignal(0);
  const find = useSignal("");
  const moved = version.value;
  const sought = find.value.trim().toLowerCase();
  const rows = sought === "" ? transcript.rows : transcript.rows.filter((row) => matches(row, sought));
  const total = rows.length;
  const end = following.value ? total : Math.min(total, last.value);
  const start = Math.max(0, end - WINDOW);

  const bare = transcript.rows.length === 0 && earlier.value === "none";

  function toEnd(): void {
    if (box.current === null) return;
    box.current.scrollTop = box.current.scrollHeight;
    placed.current = box.current.scrollTop;
  }

  useLayoutEffect(() => {
    if (following.value) toEnd();
  }, [moved, following.value]);
  // Rows also change their height by themselves, when the host has rendered what is in them.
  useEffect(() => {
    if (box.current === null || content.current === null) return;
    const sizes = new ResizeObserver(() => following.peek() && toEnd());
    sizes.observe(box.current);
    sizes.observe(content.current);
    return () => sizes.disconnect();
  }, [bare]);
  useSignalEffect(() => {
    if (following.value) seen.value = version.value && transcript.rows.length;
  });
  // A link to an event: bring its row into the window and to the reader.
  useEffect(() => {
    if (wanted === undefined) return;
    const at = rows.findIndex((row) => row.id === wanted || row.id.startsWith(`${wanted}.`));
    if (at < 0) return;
    following.value = false;
    last.value = Math.min(total, at + WINDOW / 2);
    requestAnimationFrame(() => document.getElementById(rows[at]?.id ?? "")?.scrollIntoView({ block: "center" }));
  }, [wanted, wanted === undefined ? 0 : total > 0 && earlier.value]);

  async function more(): Promise<void> {
    const before = total;
    await load();
    // The window stays on the same rows, which have moved down by what came before them.
    last.value = last.value + Math.max(0, transcript.rows.length - before);
  }

  function scrolled(): void {
    const element = box.current;
    if (element === null) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (following.value) {
      // Only a reader moves upwards: an end that is farther off because rows have grown is followed.
      if (atEnd || element.scrollTop >= placed.current - 1) return;
      last.value = total;
      seen.value = total;
      following.value = false;
    } else if (atEnd) {
      if (end >= total) following.value = true;
      else last.value = Math.min(total, end + STEP);
    } else if (element.scrollTop < NEAR) {
      if (start > 0) last.value = Math.max(WINDOW, end - STEP);
      else if (earlier.value === "some" && sought === "") void more();
    }
  }

  if (bare) {
    return (
      <Nothing title="Nothing has happened yet.">
        <p>{empty}</p>
      </Nothing>
    );
  }
  const fresh = transcript.rows.length - seen.value;
  return (
    <div class="transcript-frame">
      <div class="find">
        <label class="hidden" for="filter">Find in what the agent did</label>
        <input id="filter" placeholder="/ find" value={find.value} onInput={(event) => (find.value = event.currentTarget.value)} />
        {sought !== "" && <span class="dim" role="status">{total} of {transcript.rows.length} rows</span>}
      </div>
      <div class={following.value ? "transcript following" : "transcript"} ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label="What the agent does">
        <div ref={content}>
          {start > 0 && <p class="dim earlier">{start} earlier rows: scroll up</p>}
          {start === 0 && earlier.value !== "none" && (
            <p class="dim earlier">
              {earlier.value === "loading" ? "Loading earlier events …" : <button type="button" class="quiet" onClick={() => void more()}>Load earlier events</button>}
            </p>
          )}
          {rows.slice(start, end).map((row) => (
            <div key={row.id} id={row.id} class={`row ${row.kind}${row.id === wanted ? " wanted" : ""}`}>
              <RowMenu raw={() => transcript.raw(row.id)} link={link(row.id)} />
              <RowView row={row} />
            </div>
          ))}
        </div>
      </div>
      {!following.value && (
        <button type="button" class="pill" onClick={() => (following.value = true)}>
          {fresh > 0 ? `↓ ${fresh} new` : "↓ to the end"}
        </button>
      )}
    </div>
  );
}
