// The rows on the screen: only a window of them, following the end unless the reader scrolled away.

import { type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Nothing } from "../ui/nothing.tsx";
import { RowView } from "./row-view.tsx";
import type { Transcript } from "./rows.ts";

/** How many rows are on the page at most, and how many come with a step upwards. */
const WINDOW = 300;
const STEP = 150;
const NEAR = 80;

export function TranscriptView({ transcript, version }: { transcript: Transcript; version: Signal<number> }) {
  const box = useRef<HTMLDivElement>(null);
  const following = useSignal(true);
  const last = useSignal(0); // the end of the window, when not following
  const seen = useSignal(0);
  const moved = version.value;
  const total = transcript.rows.length;
  const end = following.value ? total : Math.min(total, last.value);
  const start = Math.max(0, end - WINDOW);

  useLayoutEffect(() => {
    if (following.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [moved, following.value]);
  useSignalEffect(() => {
    if (following.value) seen.value = version.value && transcript.rows.length;
  });

  function scrolled(): void {
    const element = box.current;
    if (element === null) return;
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (following.value) {
      if (!atEnd) {
        last.value = total;
        seen.value = total;
        following.value = false;
      }
    } else if (atEnd) {
      if (end >= total) following.value = true;
      else last.value = Math.min(total, end + STEP);
    } else if (element.scrollTop < NEAR && start > 0) {
      last.value = Math.max(WINDOW, end - STEP);
    }
  }

  if (total === 0) {
    return (
      <Nothing title="Nothing has happened yet.">
        <p>Send this agent a message below, and watch what it does here.</p>
      </Nothing>
    );
  }
  const fresh = total - seen.value;
  return (
    <div class="transcript-frame">
      <div class="transcript" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label="What the agent does">
        {start > 0 && <p class="dim earlier">{start} earlier rows: scroll up</p>}
        {transcript.rows.slice(start, end).map((row) => (
          <div key={row.id} id={row.id} class={`row ${row.kind}`}>
            <RowView row={row} />
          </div>
        ))}
      </div>
      {!following.value && (
        <button type="button" class="pill" onClick={() => (following.value = true)}>
          {fresh > 0 ? `↓ ${fresh} new` : "↓ to the end"}
        </button>
      )}
    </div>
  );
}
