import assert from "node:assert/strict";
import { test } from "node:test";
import { everyDay } from "./days.ts";

test("days without turns are there too", () => {
  assert.deepEqual(everyDay(["2026-03-01", "2026-02-27"]), ["2026-02-27", "2026-02-28", "2026-03-01"]);
  assert.deepEqual(everyDay([]), []);
  assert.equal(everyDay(["2000-01-01", "2026-01-01"]).length, 400, "bounded");
});
