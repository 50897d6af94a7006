// What an agent did, as rows to read: events come in one by one, rows are added or completed.
//
// Everything in an event was written by an agent and may be anything: every field is looked at
// before it is used, and text only ever becomes text.

import type { EventRow } from "../api/types.ts";

export type Row =
  | { kind: "turn"; id: string; at: string; from: string; body: string; unread: number; delivery: number }
  | { kind: "text"; id: string; at: string; text: string }
  | { kind: "thinking"; id: string; at: string; text: string }
  | { kind: "tool"; id: string; at: string; tool: string; input: unknown; result?: ToolResult }
  | { kind: "note"; id: string; at: string; text: string; tone: Tone }
  | { kind: "end"; id: string; at: string; ok: boolean; outcome: string; note: string; took: number | undefined }
  | { kind: "gap"; id: string; at: string; dropped: number }
  | { kind: "login"; id: string; at: string; text: string };

export type Tone = "plain" | "warn" | "bad";

export interface ToolResult {
  at: string;
  text: string;
  failed: boolean;
}

type Fields = Record<string, unknown>;

/** Rows that grow with the events. `version` moves whenever a row was added or completed. */
export class Transcript {
  readonly rows: Row[] = [];
  version = 0;
  #calls = new Map<string, Row & { kind: "tool" }>();
  #began: string | undefined;
  #limited = "";

  /** Takes the next event. */
  add(event: EventRow): void {
    const before = this.rows.length;
    const done = this.#event(event);
    if (done || this.rows.length !== before) this.version++;
  }

  #event(event: EventRow): boolean {
    const { data, at } = event;
    const id = `e${event.seq}`;
    switch (event.kind) {
      case "turn_start":
        this.#began = at;
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
        return this.#results(at, value);
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
    blocks(value).forEach((block, index) => {
      const row = `${id}.${index}`;
      if (block.type === "text" && text(block.text).trim() !== "") {
        this.rows.push({ kind: "text", id: row, at, text: text(block.text) });
      } else if (block.type === "thinking") {
        this.rows.push({ kind: "thinking", id: row, at, text: text(block.thinking) });
      } else if (block.type === "tool_use") {
        const call: Row = { kind: "tool", id: row, at, tool: text(block.name), input: block.input };
        this.rows.push(call);
        this.#calls.set(text(block.id), call);
      } else {
        return;
      }
      added = true;
    });
    return added;
  }

  #results(at: string, value: Fields): boolean {
    let completed = false;
    for (const block of blocks(value)) {
      if (block.type !== "tool_result") continue;
      const call = this.#calls.get(text(block.tool_use_id));
      if (call === undefined) continue;
      call.result = { at, text: flat(block.content), failed: block.is_error === true };
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
