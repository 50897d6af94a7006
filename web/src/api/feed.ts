// The tab's one stream of events, shared by everything on the page.

import { leave } from "../session.ts";
import { type Following, follow } from "./stream.ts";
import type { EventRow } from "./types.ts";

export interface Listener {
  /** One event, in order, each once. */
  event(event: EventRow, epoch: string): void;
  /** Events are missing before the next one. */
  gap?(): void;
  /** The stream is (again) there. */
  live?(): void;
}

export class Feed {
  #listeners = new Set<Listener>();
  #following: Following | undefined;
  #watched: string | undefined;

  /**
   * `path` is the stream; on the dashboard it has everything but what harnesses tell in detail,
   * unless somebody watches the agent.
   */
  constructor(readonly path: string, readonly ofHive: boolean) {}

  /** Follows the stream from a position on. */
  start(position: string): void {
    if (this.#following !== undefined) return;
    this.#following = follow((last) => this.#address(last ?? position), {
      live: () => this.#listeners.forEach((one) => one.live?.()),
      refused: () => leave("The token is not good any more."),
      event: ({ id, kind, data }) => {
        if (kind === "gap") {
          this.#listeners.forEach((one) => one.gap?.());
          return;
        }
        const event = JSON.parse(data) as EventRow;
        const epoch = id?.split("-")[0] ?? "";
        this.#listeners.forEach((one) => one.event(event, epoch));
      },
    });
  }

  /** Also what this agent's harness tells in detail, from now on. */
  watch(name: string | undefined): void {
    if (!this.ofHive || this.#watched === name) return;
    this.#watched = name;
    this.#following?.again();
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stop(): void {
    this.#following?.stop();
    this.#following = undefined;
  }

  #address(after: string): string {
    const asked = new URLSearchParams({ after });
    if (this.ofHive) asked.set("watch", this.#watched ?? "-");
    return `${this.path}?${asked.toString()}`;
  }
}
