import assert from "node:assert/strict";
import { test } from "node:test";
import type { DiffLine } from "../api/types.ts";
import { pairs, withoutBlanks } from "./lines.ts";

const line = (sign: DiffLine["sign"], text: string): DiffLine => ({ sign, inside: [text] });
const texts = (lines: DiffLine[]): string[] => lines.map((one) => `${one.sign}${String(one.inside[0])}`);

test("changes of blanks alone are left out, others stay", () => {
  const lines = [line(" ", "a"), line("-", "x = 1"), line("+", "x  =  1"), line("-", "y"), line("+", "z"), line("+", "new")];
  assert.deepEqual(texts(withoutBlanks(lines.slice(0, 3))), [" a", " x  =  1"]);
  assert.deepEqual(texts(withoutBlanks(lines.slice(3))), ["-y", "+z", "+new"]);
  assert.deepEqual(withoutBlanks([]), []);
});

test("removed lines stand beside the added ones", () => {
  const rows = pairs([line("-", "a"), line("-", "b"), line("+", "A"), line(" ", "c"), line("+", "d")]);
  assert.deepEqual(rows.map(([old, now]) => [old?.inside[0], now?.inside[0]]), [["a", "A"], ["b", undefined], ["c", "c"], [undefined, "d"]]);
});
