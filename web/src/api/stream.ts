// A stream of the host's events that resumes where it broke off.

import { signal } from "@preact/signals";
import { ApiError, headers } from "./client.ts";
import { type SseEvent, SseParser } from "./sse.ts";

export type Link = "connecting" | "live" | "lost" | "refused";

/** How the page's one stream is doing, and since when. */
export const link = signal<{ state: Link; since: number }>({ state: "connecting", since: Date.now() });

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;
/** The host beats every 15 s: a stream that is silent for longer is dead. */
const SILENCE = 45_000;

/** Where a stream is read, and from which event on; asked before each connection. */
export type Source = (last: string | undefined) => string;

export interface Handlers {
  /** One event, in order, each once. */
  event(event: SseEvent): void;
  /** The stream is (again) there. */
  live(): void;
  /** The token is not good any more. */
  refused(): void;
}

/** A stream that is being followed. */
export interface Following {
  /** Connects anew, because the source has changed; nothing is missed. */
  again(): void;
  stop(): void;
}

/** Follows a stream until it is stopped. */
export function follow(source: Source, handlers: Handlers): Following {
  const stop = new AbortController();
  let current = new AbortController();
  void run(source, handlers, stop.signal, () => {
    current = new AbortController();
    return current.signal;
  });
  return { again: () => current.abort(), stop: () => stop.abort() };
}

async function run(source: Source, handlers: Handlers, stop: AbortSignal, fresh: () => AbortSignal): Promise<void> {
  let last: string | undefined;
  let pause = FIRST_PAUSE;
  while (!stop.aborted) {
    const changed = fresh();
    try {
      await once(source(last), last, AbortSignal.any([stop, changed]), (id) => (last = id), {
        ...handlers,
        live: () => {
          pause = FIRST_PAUSE;
          say("live");
          handlers.live();
        },
      });
    } catch (error) {
      if (stop.aborted) return;
      if (changed.aborted) continue;
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
        say("refused");
        handlers.refused();
        return;
      }
    }
    if (stop.aborted) return;
    say("lost");
    await rest(pause * (0.75 + Math.random() / 2), stop);
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

async function once(
  path: string,
  last: string | undefined,
  stop: AbortSignal,
  moved: (id: string) => void,
  handlers: Handlers,
): Promise<void> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE);
  try {
    const more = { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) };
    const signal = AbortSignal.any([stop, silence.signal]);
    const response = await fetch(path, { headers: headers(more), cache: "no-store", signal });
    if (!response.ok || response.body === null) {
      throw new ApiError(response.status, "stream", `The host answered ${response.status}.`);
    }
    handlers.live();
    const parser = new SseParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE);
      for (const event of parser.push(value)) handlers.event(event);
      if (parser.last !== undefined) moved(parser.last);
    }
  } finally {
    clearTimeout(timer);
  }
}

function say(state: Link): void {
  if (link.value.state !== state) link.value = { state, since: Date.now() };
}

function rest(milliseconds: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    const hurry = (): void => {
      clearTimeout(timer);
      resolve();
    };
    stop.addEventListener("abort", hurry, { once: true });
    // A laptop that wakes up, or a network that comes back, is no reason to wait.
    window.addEventListener("online", hurry, { once: true });
  });
}
