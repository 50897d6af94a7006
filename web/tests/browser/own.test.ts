// What an agent brings along itself: links, a mark, pages of its own. None of it gets at the hive's.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, eventually, launch, live, open, type Page } from "./browser.ts";
import { Hive } from "./hive.ts";

const CONFIG = `icon = "mark.svg"

[[dashboard_links]]
label = "Board"
url = "http://localhost:9001/board"
icon = "B"

[frontend.extra_files."report"]
source = "report.html"
target = "report.html"
`;
const MARK = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8" width="31" height="31"><script>parent.marked = true</script><rect width="8" height="8" fill="red"/></svg>';
const REPORT = `<!doctype html><title>report</title><p id="said"></p><script>
const found = [];
const tell = (what) => { found.push(what); document.getElementById("said").textContent = found.join(" "); };
try { localStorage.getItem("hive-token"); tell("storage:open"); } catch { tell("storage:shut"); }
fetch("/api/state").then((answer) => tell("api:" + answer.status), () => tell("api:shut"));
</script>`;

let hive: Hive;
let browser: Browser;
let page: Page;
let complaints: string[];
before(async () => {
  [hive, browser] = await Promise.all([Hive.start({ scenario: "pages.toml" }), launch()]);
  await hive.cli("spawn", "ada", "--runtime", "process");
  const id = await hive.propose("ada", { "agent.toml": CONFIG, "mark.svg": MARK, "report.html": REPORT }, "A report for you.");
  const { approvals } = await hive.call("pending");
  const { hash } = approvals.find((one: { approval_id: number }) => one.approval_id === id);
  await hive.call("approve", { approval_id: id, hash });
  ({ page, complaints } = await open(browser, await hive.link()));
  await live(page);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

test("T29 T31 links and the mark are on the card and on the agent's page", async () => {
  const row = page.locator("table.fleet tr", { hasText: "ada" });
  assert.equal(await row.getByTitle(/^Board/).getAttribute("href"), "http://localhost:9001/board");
  const drawn = (): Promise<number> => row.locator("img.mark").evaluate((mark) => (mark as HTMLImageElement).naturalWidth);
  await eventually("its own mark is drawn", async () => (await drawn()) === 31);
  await row.getByRole("link", { name: "ada" }).click();
  const link = page.locator(".agent-header").getByRole("link", { name: "Board" });
  assert.match((await link.getAttribute("rel")) ?? "", /noopener/);
  await eventually("it is there too", () => page.locator(".agent-header img.mark").evaluate((mark) => (mark as HTMLImageElement).naturalWidth === 31));
  assert.equal(await page.evaluate(() => "marked" in globalThis), false, "a mark is drawn and not run");
  assert.deepEqual(complaints, []);
});

test("T32 an agent's own page opens from here, in a sandbox: no storage, no API", async () => {
  await page.goto(`${hive.address}/#/agent/ada`);
  const [own] = await Promise.all([page.context().waitForEvent("page"), page.getByRole("link", { name: "report.html" }).click()]);
  await own.locator("#said", { hasText: "storage:shut" }).waitFor();
  await own.locator("#said", { hasText: "api:shut" }).waitFor();
  assert.equal(await own.evaluate(() => globalThis.origin), "null");
  assert.equal(await own.evaluate(() => globalThis.opener), null);
  const at = new URL(own.url());
  for (const path of ["/own/agent.toml", "/own/mark.svg", "/own/../agent.toml", "/own/%2e%2e/agent.toml", "/own/report.html/../../agent.toml"]) {
    const answer = await fetch(`${at.origin}${path}`);
    assert.notEqual(answer.status, 200, path);
  }
  await own.close();
});
