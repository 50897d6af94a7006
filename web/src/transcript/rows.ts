// What an agent did, as rows to read: events come in one by one, rows are added or completed.
//
// Everything in an event was written by an agent and may be anything: every field is looked at
// before it is used, and text only ever becomes text.

import type { EventRow } from "../api/types.ts";

export type Row =
  | { kind: "turn"; id: string; at: string; from: string; body: string; unread: number; delivery: number }
  | { kind: "text"; id: string; at: string; text: string; tokens?: Tokens }
  | { kind: "thinking"; id: string; at: string; text: string; tokens?: Tokens }
  | { kind: "tool"; id: string; at: string; tool: string; input: unknown; result?: ToolResult; tokens?: Tokens }
  | { kind: "note"; id: string; at: string; text: string; tone: Tone }
  | { kind: "end"; id: string; at: string; ok: boolean; outcome: string; note: string; took: number | undefined; tokens: Tokens }
  | { kind: "gap"; id: string; at: string; dropped: number }
  | { kind: "login"; id: string; at: string; text: string };

export type Tone = "plain" | "warn" | "bad";

/** What one step, or a whole turn, read and wrote. */
export interface Tokens {
  read: number;
  wrote: number;
}

export interface ToolResult {
  at: string;
  /** The event that brought it. */
  event: string;
  text: string;
  failed: boolean;
}

type Fields = Record<string, unknown>;

/** The most events that are kept: the oldest go first. */
const MOST = 60_000;

/** Rows that grow with the events. `version` moves whenever a row was added or completed. */
export class Transcript {
  rows: Row[] = [];
  version = 0;
  #events: EventRow[] = [];
  /** Which log the events are of. */
  epoch: string | undefined;
  #last = 0;
  #calls = new Map<string, Row & { kind: "tool" }>();
  #began: string | undefined;
  #limited = "";
  #message = "";
  #spent: Tokens = { read: 0, wrote: 0 };

  /** Takes the next event. One that is known already is left out: a stream that resumes may repeat. */
  add(event: EventRow, epoch?: string): void {
    // The numbers of another log begin anew.
    if (epoch !== undefined && epoch !== this.epoch) {
      if (this.epoch !== undefined) this.#last = 0;
      this.epoch = epoch;
    }
    if (event.seq <= this.#last) return;
    this.#last = event.seq;
    this.#events.push(event);
    if (this.#events.length > MOST) {
      this.#events = this.#events.slice(MOST / 4);
      this.#rebuild();
      return;
    }
    const before = this.rows.length;
    const done = this.#event(event);
    if (done || this.rows.length !== before) this.version++;
  }

  /** Puts events before all others; what began in them is completed by those that are there. */
  prepend(events: EventRow[]): void {
    const first = this.#events[0]?.seq ?? Infinity;
    this.#events = [...events.filter((event) => event.seq < first), ...this.#events];
    this.#last = Math.max(this.#last, this.#events.at(-1)?.seq ?? 0);
    this.#rebuild();
  }

  /** Says that events are missing here. */
  gap(): void {
    // It stands between two events, and stays there when earlier ones come.
    const seq = this.#last + 0.5;
    if (this.#events.at(-1)?.seq === seq) return;
    const here = { seq, at: new Date().toISOString(), about: "", kind: "gap", data: {} };
    this.#events.push(here);
    this.#event(here);
    this.version++;
  }

  /** The oldest event that is here. */
  get first(): number | undefined {
    return this.#events[0]?.seq;
  }

  /** The newest event that is here. */
  get last(): number {
    return this.#last;
  }

  /** The event behind a row, as the host told it. */
  raw(id: string): EventRow | undefined {
    const seq = Number(/^e(\d+)/.exec(id)?.[1]);
    return this.#events.find((event) => event.seq === seq);
  }

  #rebuild(): void {
    this.rows = [];
    this.#calls.clear();
    this.#began = undefined;
    this.#limited = "";
    this.#message = "";
    this.#spent = { read: 0, wrote: 0 };
    for (const event of this.#events) this.#event(event);
    this.version++;
  }

  #event(event: EventRow): boolean {
    const { data, at } = event;
    const id = `e${event.seq}`;
    switch (event.kind) {
      case "turn_start":
        this.#began = at;
        this.#spent = { read: 0, wrote: 0 };
        this.rows.push({
          kind: "turn", id, at,
          from: text(data.from), body: text(data.body),
          unread: number(data.unread), delivery: number(data.delivery),
        });
        return true;
      case "turn_end":
        this.rows.push({
          kind: "end", id, at,
          ok: data.ok === true, outcome: text(data.outcome), note: text(data.note),
          took: this.#began === undefined ? undefined : Date.parse(at) - Date.parse(this.#began),
          tokens: this.#spent,
        });
        this.#began = undefined;
        this.#calls.clear();
        return true;
      case "stream":
        return this.#stream(id, at, fields(data.value));
      case "note":
        this.rows.push({ kind: "note", id, at, text: text(data.text), tone: "plain" });
        return true;
      case "gap":
        this.rows.push({ kind: "gap", id, at, dropped: number(data.dropped) });
        return true;
      case "login":
        this.rows.push({ kind: "login", id, at, text: text(data.text) });
        return true;
      default:
        return false;
    }
  }

  #stream(id: string, at: string, value: Fields): boolean {
    switch (value.type) {
      case "assistant":
        return this.#blocks(id, at, value);
      case "user":
        return this.#results(id, at, value);
      case "rate_limit_event":
        return this.#limit(id, at, fields(value.rate_limit_info));
      case "system":
        return this.#system(id, at, value);
      default:
        return false;
    }
  }

  #blocks(id: string, at: string, value: Fields): boolean {
    let added = false;
    const tokens = this.#tokens(value);
    blocks(value).forEach((block, index) => {
      const row = `${id}.${index}`;
      const step = index === 0 && tokens !== undefined ? { tokens } : {};
      if (block.type === "text" && text(block.text).trim() !== "") {
        this.rows.push({ kind: "text", id: row, at, text: text(block.text), ...step });
      } else if (block.type === "thinking") {
        this.rows.push({ kind: "thinking", id: row, at, text: text(block.thinking), ...step });
      } else if (block.type === "tool_use") {
        const call: Row = { kind: "tool", id: row, at, tool: text(block.name), input: block.input, ...step };
        this.rows.push(call);
        this.#calls.set(text(block.id), call);
      } else {
        return;
      }
      added = true;
    });
    return added;
  }

  /** What a step cost; its blocks come one by one and repeat it. */
  #tokens(value: Fields): Tokens | undefined {
    const message = fields(value.message);
    const usage = fields(message.usage);
    if (text(message.id) === "" || message.id === this.#message) return undefined;
    this.#message = text(message.id);
    const read = number(usage.input_tokens) + number(usage.cache_read_input_tokens) + number(usage.cache_creation_input_tokens);
    const tokens = { read, wrote: number(usage.output_tokens) };
    this.#spent = { read: this.#spent.read + read, wrote: this.#spent.wrote + tokens.wrote };
    return tokens;
  }

  #results(id: string, at: string, value: Fields): boolean {
    let completed = false;
    for (const block of blocks(value)) {
      if (block.type !== "tool_result") continue;
      const call = this.#calls.get(text(block.tool_use_id));
      if (call === undefined) continue;
      call.result = { at, event: id, text: flat(block.content), failed: block.is_error === true };
      completed = true;
    }
    return completed;
  }

  /** A limit is said once, not with every answer. */
  #limit(id: string, at: string, info: Fields): boolean {
    const status = text(info.status);
    if (status === this.#limited || status === "allowed") return false;
    this.#limited = status;
    const reset = number(info.resetsAt);
    const until = reset > 0 ? `, resets ${new Date(reset * 1000).toLocaleTimeString()}` : "";
    const tone = status === "rejected" ? "bad" : "warn";
    this.rows.push({ kind: "note", id, at, text: `usage limit: ${status}${until}`, tone });
    return true;
  }

  #system(id: string, at: string, value: Fields): boolean {
    if (value.subtype === "compact_boundary") {
      const of = fields(value.compact_metadata);
      const sizes = `${number(of.pre_tokens)} → ${number(of.post_tokens)} tokens`;
      this.rows.push({ kind: "note", id, at, text: `session compacted, ${sizes}`, tone: "plain" });
      return true;
    }
    if (value.subtype === "api_retry") {
      const why = text(value.error) || "error";
      const note = `model service: ${why}, attempt ${number(value.attempt)} of ${number(value.max_retries)}`;
      this.rows.push({ kind: "note", id, at, text: note, tone: "warn" });
      return true;
    }
    if (value.subtype === "permission_denied") {
      this.rows.push({ kind: "note", id, at, text: `not allowed: ${text(value.tool_name)}`, tone: "warn" });
      return true;
    }
    return false;
  }
}

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function blocks(value: Fields): Fields[] {
  const { content } = fields(value.message);
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content.map(fields) : [];
}

/** The text of a tool's result, which is a string or a list of blocks. */
function flat(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined ? "" : JSON.stringify(content);
  return content
    .map(fields)
    .map((block) => (block.type === "text" ? text(block.text) : `[${text(block.type) || "block"}]`))
    .join("\n");
}
