import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRow } from "../api/types.ts";
import { Transcript } from "./rows.ts";

let seq = 0;
function event(kind: string, data: Record<string, unknown>): EventRow {
  seq++;
  return { seq, at: `2026-01-02T03:04:${String(seq % 60).padStart(2, "0")}Z`, about: "ada", kind, data };
}
const stream = (value: unknown): EventRow => event("stream", { value });
const assistant = (...content: unknown[]): EventRow => stream({ type: "assistant", message: { content } });

test("D5 a turn reads as header, calls with their results, text, end", () => {
  const transcript = new Transcript();
  transcript.add(event("turn_start", { from: "operator", body: "hi", unread: 2, delivery: 1 }));
  transcript.add(stream({ type: "system", subtype: "init" }));
  transcript.add(assistant({ type: "thinking", thinking: "hm" }));
  transcript.add(assistant({ type: "tool_use", id: "t1", name: "Read", input: { file_path: "/a" } }));
  transcript.add(assistant({ type: "tool_use", id: "t2", name: "Grep", input: {} }));
  transcript.add(
    stream({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: "t1", content: "one\ntwo" }] } }),
  );
  transcript.add(assistant({ type: "text", text: "done" }));
  transcript.add(stream({ type: "result", result: "done" }));
  transcript.add(event("turn_end", { ok: true, outcome: "ok" }));
  assert.deepEqual(transcript.rows.map((row) => row.kind), ["turn", "thinking", "tool", "tool", "text", "end"]);
  const [first, second] = transcript.rows.filter((row) => row.kind === "tool");
  assert.equal(first?.result?.text, "one\ntwo");
  assert.equal(second?.result, undefined, "it has not come yet");
});

test("a gap is shown once, and stays where it was when earlier events come", () => {
  const transcript = new Transcript();
  const early = event("note", { text: "early" });
  transcript.add(event("note", { text: "before" }));
  transcript.gap();
  transcript.gap();
  transcript.add(event("note", { text: "after" }));
  transcript.prepend([early]);
  assert.deepEqual(transcript.rows.map((row) => (row.kind === "note" ? row.text : row.kind)), ["early", "before", "gap", "after"]);
  assert.equal(new Set(transcript.rows.map((row) => row.id)).size, 4, "each row has a name of its own");
});

test("a result moves the version although it adds no row", () => {
  const transcript = new Transcript();
  transcript.add(assistant({ type: "tool_use", id: "t1", name: "Read", input: {} }));
  const { version } = transcript;
  transcript.add(
    stream({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: "t1", content: [] }] } }),
  );
  assert.notEqual(transcript.version, version);
});

test("a repeated limit is said once", () => {
  const transcript = new Transcript();
  const limit = { type: "rate_limit_event", rate_limit_info: { status: "rejected", resetsAt: 1 } };
  transcript.add(stream(limit));
  transcript.add(stream(limit));
  assert.equal(transcript.rows.length, 1);
});

test("whatever an agent writes, nothing breaks", () => {
  const odd = [null, 1, "x", [], {}, { type: 5 }, { type: "assistant" }, { type: "assistant", message: 7 },
    { type: "assistant", message: { content: [null, 3, { type: "text", text: 9 }, { type: "tool_use" }] } },
    { type: "user", message: { content: [{ type: "tool_result", tool_use_id: {}, content: { a: 1 } }] } },
    { type: "rate_limit_event", rate_limit_info: "no" }, { type: "system", subtype: {} }];
  const transcript = new Transcript();
  for (const value of odd) transcript.add(stream(value));
  for (const kind of ["turn_start", "turn_end", "note", "gap", "login", "state", "nonsense"]) {
    transcript.add(event(kind, { from: {}, body: [], unread: "x", ok: "yes", text: 4, dropped: null }));
  }
  assert.ok(transcript.rows.every((row) => typeof row.id === "string"));
});

test("an event that comes twice is shown once, and another log begins anew", () => {
  const transcript = new Transcript();
  const note = (at: number): EventRow => ({ seq: at, at: "2026-01-02T03:04:05Z", about: "ada", kind: "note", data: { text: `n${at}` } });
  transcript.add(note(5), "1");
  transcript.add(note(6), "1");
  transcript.add(note(5), "1");
  assert.equal(transcript.rows.length, 2);
  transcript.add(note(1), "2");
  assert.equal(transcript.rows.length, 3, "the numbers of another log are its own");
});

test("earlier events go before, and a call is completed across the border of two pages", () => {
  const transcript = new Transcript();
  const call = assistant({ type: "tool_use", id: "t9", name: "Read", input: {} });
  const result = stream({ type: "user", message: { content: [{ type: "tool_result", tool_use_id: "t9", content: "here" }] } });
  const later = assistant({ type: "text", text: "later" });
  transcript.add(result);
  transcript.add(later);
  assert.deepEqual(transcript.rows.map((row) => row.kind), ["text"]);
  transcript.prepend([call, result]);
  assert.deepEqual(transcript.rows.map((row) => row.kind), ["tool", "text"]);
  assert.equal(transcript.rows[0]?.kind === "tool" && transcript.rows[0].result?.text, "here");
  assert.equal(transcript.raw(transcript.rows[0]?.id ?? ""), call);
});

test("what a step cost is said once, and summed up at the end", () => {
  const transcript = new Transcript();
  const step = (id: string, type: string): EventRow => stream({ type: "assistant", message: { id, usage: { input_tokens: 10, cache_read_input_tokens: 5, output_tokens: 2 }, content: [{ type, text: "x", thinking: "y" }] } });
  transcript.add(event("turn_start", { from: "operator", body: "" }));
  transcript.add(step("m1", "thinking"));
  transcript.add(step("m1", "text"));
  transcript.add(step("m2", "text"));
  transcript.add(event("turn_end", { ok: true }));
  const tokens = transcript.rows.map((row) => ("tokens" in row ? row.tokens : undefined));
  assert.deepEqual(tokens, [undefined, { read: 15, wrote: 2 }, undefined, { read: 15, wrote: 2 }, { read: 30, wrote: 4 }]);
});
