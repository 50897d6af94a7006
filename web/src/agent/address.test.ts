import assert from "node:assert/strict";
import { test } from "node:test";
import { address } from "./address.ts";

test("the last address of a login is opened, whatever else it says", () => {
  for (const [lines, expected] of [
    [[], undefined],
    [["no address"], undefined],
    [["javascript:alert(1) http://plain.test/"], undefined],
    [["Open https://login.example.test/a?state=1 now"], "https://login.example.test/a?state=1"],
    [["https://one.test/", "https://two.test/"], "https://two.test/"],
    [["https://one.test/", "https://[ https://%"], "https://one.test/"],
    [['"https://one.test/"><script>'], "https://one.test/"],
  ] as [string[], string | undefined][]) {
    assert.equal(address(lines)?.href, expected, JSON.stringify(lines));
  }
});
