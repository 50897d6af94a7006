// An agent's past and present as one transcript: a page of the past, what the stream brings, and
// earlier pages when the reader asks for them.

import { signal } from "@preact/signals";
import type { Feed } from "../api/feed.ts";
import type { AgentSnapshot, EventRow } from "../api/types.ts";
import { Transcript } from "../transcript/rows.ts";
import { complain } from "../ui/toasts.tsx";
import type { AgentApi } from "./api.ts";

/** Events after which the agent stands differently. */
const TELLING = new Set([
  "turn_start", "turn_end", "turn_ended", "state", "message_stored", "messages_delivered", "status_set",
]);
const LOGIN_LINES = 30;
const GATHER = 100;
const PAGE = 1_000;
/** How far back a link to an event is looked for. */
const PAGES_BACK = 60;

export class Live {
  readonly transcript = new Transcript();
  readonly version = signal(0);
  readonly state = signal<AgentSnapshot | undefined>(undefined);
  readonly problem = signal<unknown>(undefined);
  readonly earlier = signal<"none" | "some" | "loading">("loading");
  readonly login = signal<string[]>([]);
  #before: string | undefined;
  #early: [EventRow, string][] | undefined = [];
  #painted = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly api: AgentApi, readonly feed: Feed, readonly name: string | undefined) {}

  /** Begins; the returned function ends it. */
  start(): () => void {
    this.feed.watch(this.name);
    const silent = this.feed.listen({
      live: () => this.#refresh(),
      gap: () => void this.#mend(),
      event: (event, epoch) => {
        if (this.name !== undefined && event.about !== this.name) return;
        if (this.#early === undefined) this.#take(event, epoch);
        else this.#early.push([event, epoch]);
      },
    });
    void this.#load();
    return () => {
      silent();
      this.feed.watch(undefined);
      clearTimeout(this.#timer);
      cancelAnimationFrame(this.#painted);
    };
  }

  /** Gets the page before what is here. */
  async more(limit = PAGE): Promise<void> {
    if (this.earlier.value !== "some") return;
    this.earlier.value = "loading";
    try {
      const page = await this.api.past(this.#before, limit);
      this.transcript.prepend(page.events);
      this.#goOn(page.before);
    } catch (error) {
      this.earlier.value = "some";
      complain(error);
    }
    this.version.value = this.transcript.version;
  }

  /** Gets pages until this event is here, or there are no more. */
  async reach(seq: number): Promise<void> {
    for (let page = 0; page < PAGES_BACK && this.earlier.value === "some" && (this.transcript.first ?? 0) > seq; page++) await this.more();
  }

  async #load(): Promise<void> {
    try {
      const [state, past] = await Promise.all([this.api.state(), this.api.past()]);
      this.state.value = state;
      this.transcript.epoch = past.position.split("-")[0];
      this.transcript.prepend(past.events);
      for (const event of past.events) this.#noteLogin(event);
      for (const [event, of] of this.#early ?? []) this.#take(event, of);
      this.#early = undefined;
      this.#goOn(past.before);
      this.version.value = this.transcript.version;
      this.problem.value = undefined;
      this.feed.start(past.position);
    } catch (error) {
      this.problem.value = error;
    }
  }

  /**
   * The host's log has a hole. Whether it is one of this agent's events, the past tells: a page of
   * it that reaches back to what is here has everything that there is.
   */
  async #mend(): Promise<void> {
    if (this.#early !== undefined) return; // The first page is still to come, and has it all.
    const known = this.transcript.last;
    this.#early = [];
    try {
      const past = await this.api.past();
      const epoch = past.position.split("-")[0] ?? "";
      const reaches = this.transcript.epoch === epoch && (past.before === null || past.events.some((event) => event.seq <= known));
      if (!reaches) this.transcript.gap();
      for (const event of past.events) this.#take(event, epoch);
    } catch {
      this.transcript.gap();
    }
    const waiting = this.#early;
    this.#early = undefined;
    for (const [event, epoch] of waiting) this.#take(event, epoch);
    this.#paint();
  }

  #goOn(before: string | null): void {
    this.#before = before ?? undefined;
    this.earlier.value = before === null ? "none" : "some";
  }

  #take(event: EventRow, epoch: string): void {
    this.transcript.add(event, epoch);
    this.#noteLogin(event);
    if (TELLING.has(event.kind)) this.#refresh();
    this.#paint();
  }

  #noteLogin(event: EventRow): void {
    if (event.kind === "login") this.login.value = [...this.login.value, String(event.data.text ?? "")].slice(-LOGIN_LINES);
  }

  #refresh(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      // A host that is away is told of by the stream's own sign.
      this.api.state().then((now) => (this.state.value = now), () => undefined);
    }, GATHER);
  }

  #paint(): void {
    if (this.#painted !== 0) return;
    this.#painted = requestAnimationFrame(() => {
      this.#painted = 0;
      this.version.value = this.transcript.version;
    });
  }
}
