import assert from "node:assert/strict";
import { test } from "node:test";
import { completions, understand } from "./commands.ts";

test("D5 a line is a message unless it is a command", () => {
  assert.deepEqual(understand("hello /model"), { is: "message", body: "hello /model" });
  assert.deepEqual(understand("/etc/passwd looks odd"), { is: "message", body: "/etc/passwd looks odd" });
  assert.deepEqual(understand("/help"), { is: "help" });
  assert.deepEqual(understand("/mdoel x"), { is: "unknown", name: "mdoel" });
  const model = understand("/model  opus ");
  assert.ok(model.is === "command" && model.command.name === "model" && model.argument === "opus");
});

test("names are completed", () => {
  assert.deepEqual(completions("/m"), ["/model"]);
  assert.deepEqual(completions("/model"), []);
  assert.deepEqual(completions("m"), []);
});
