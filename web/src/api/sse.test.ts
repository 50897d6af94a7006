import assert from "node:assert/strict";
import { test } from "node:test";
import { SseParser } from "./sse.ts";

test("events are found however the text is cut", () => {
  const text = 'id: 7-1\nevent: row\ndata: {"a":1}\n\n: beat\n\nid: 7-2\r\ndata: x\r\ndata: y\r\n\r\n';
  const whole = new SseParser().push(text);
  assert.deepEqual(whole, [
    { id: "7-1", kind: "row", data: '{"a":1}' },
    { id: "7-2", kind: "message", data: "x\ny" },
  ]);
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new SseParser();
    const pieces = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))];
    assert.deepEqual(pieces, whole, `cut at ${cut}`);
  }
});

test("a heartbeat is no event, a field without a colon is empty, an unknown one ignored", () => {
  const parser = new SseParser();
  assert.deepEqual(parser.push(":\n\nretry: 10\n\ndata\n\n"), [
    { id: undefined, kind: "message", data: "" },
  ]);
});
