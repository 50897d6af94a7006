// What agents wrote, shown: the host turns it into parts, some pieces at a time, and the newest
// are kept. Until a piece has come, the page shows it as plain text.

import { type Signal, signal } from "@preact/signals";
import { ask } from "./client.ts";
import type { FileChange, Node } from "./types.ts";

export type Piece =
  | { kind: "markdown" | "terminal" | "patch"; text: string }
  | { kind: "change"; path: string; before: string; after: string };

export interface Shown {
  nodes?: Node[];
  files?: FileChange[];
}

/** As many as the host takes at once, in pieces and in characters. */
const MOST_PIECES = 64;
const MOST_CHARACTERS = 100_000;
const KEPT = 2_000;
/** What is longer stays plain text … */
export const LONGEST = 60_000;
/** … but for changes, which are decided about: as many bytes as the host takes. */
const LONGEST_PATCH = 500_000;

interface Wanted {
  piece: Piece;
  shown: Signal<Shown | undefined>;
}

const kept = new Map<string, Signal<Shown | undefined>>();
let queue: Wanted[] = [];
let asking = false;

/** Whether the host is not asked about a piece. */
export function isTooLong(piece: Piece): boolean {
  const text = JSON.stringify(piece);
  return text.length > LONGEST && (piece.kind !== "patch" || new TextEncoder().encode(text).length > LONGEST_PATCH);
}

/** The piece as parts, once it has come. */
export function shown(piece: Piece): Signal<Shown | undefined> {
  const key = JSON.stringify(piece);
  const known = kept.get(key);
  if (known !== undefined) return known;
  const fresh = signal<Shown | undefined>(undefined);
  kept.set(key, fresh);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value ?? "");
  if (!isTooLong(piece)) {
    queue.push({ piece, shown: fresh });
    if (!asking) {
      asking = true;
      queueMicrotask(() => void drain());
    }
  }
  return fresh;
}

async function drain(): Promise<void> {
  while (queue.length > 0) {
    const batch: Wanted[] = [];
    let characters = 0;
    while (batch.length < MOST_PIECES) {
      // The newest first: that is what the reader looks at.
      const next = queue.at(-1);
      if (next === undefined) break;
      characters += JSON.stringify(next.piece).length;
      // A long one goes by itself.
      if (batch.length > 0 && characters > MOST_CHARACTERS) break;
      batch.push(next);
      queue.pop();
    }
    try {
      const answer = await ask<{ pieces: Shown[] }>("/api/render", { pieces: batch.map((one) => one.piece) });
      batch.forEach((one, index) => (one.shown.value = answer.pieces[index]));
    } catch {
      // Plain text it stays; the next look asks again.
      for (const one of batch) kept.delete(JSON.stringify(one.piece));
    }
  }
  asking = false;
}
