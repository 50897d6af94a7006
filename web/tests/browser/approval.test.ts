// Approvals: exactly what would be applied is shown before it can be decided, and it is decided once.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, eventually, launch, live, open, type Page } from "./browser.ts";
import { HOSTILE } from "./corpus.ts";
import { Hive } from "./hive.ts";

let hive: Hive;
let browser: Browser;
let page: Page;
before(async () => {
  [hive, browser] = await Promise.all([Hive.start({ scenario: "pages.toml" }), launch()]);
  await hive.cli("spawn", "ada", "--runtime", "process");
  ({ page } = await open(browser, await hive.link()));
  await live(page);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

const propose = (config: string, reason: string): Promise<number> => hive.propose("ada", { "agent.toml": config }, reason);

async function state(id: number): Promise<string | undefined> {
  const { approvals } = await hive.call("pending", { all: true });
  return approvals.find((one: { approval_id: number }) => one.approval_id === id)?.state;
}

test("C6 a change shows its lines, its hash and what it gives before it is approved", async () => {
  const id = await propose('model = "opus"\ntool_groups = ["messaging", "web_tools"]\n', "I need the web.");
  const card = page.locator(`#item-p${id}`);
  await card.locator("td.added", { hasText: 'model = "opus"' }).waitFor();
  await card.locator(".string", { hasText: '"opus"' }).waitFor();
  const line = await card.locator("table.diff tr").first().boundingBox();
  assert.ok(line !== null && line.height < 40, `a line of a change is a line: ${line?.height} px`);
  await card.getByText("Changes what it may do").waitFor();
  await card.getByText("written by ada, not checked").waitFor();
  assert.match(await card.locator("code[title]").first().getAttribute("title") ?? "", /^[0-9a-f]{16,}/);
  await card.getByLabel("side by side").check();
  await card.locator("table.split").waitFor();
  await card.getByLabel("side by side").uncheck();
  await card.getByRole("button", { name: "Approve" }).click();
  await card.waitFor({ state: "detached" });
  await eventually("it is approved", async () => (await state(id)) === "approved");
  await page.getByRole("link", { name: "Decisions" }).click();
  await page.locator("li.card", { hasText: "approved" }).first().waitFor();
  await page.getByRole("link", { name: /^Overview/ }).click();
});

test("a denial carries its note, and a long change must be unfolded first", async () => {
  const long = Array.from({ length: 120 }, (_, line) => `# line ${line}`).join("\n");
  const id = await propose(`model = "haiku"\n${long}\n`, HOSTILE.filter((text) => !/\p{Cc}|\p{Cf}/u.test(text)).join("\n").slice(0, 2000));
  const card = page.locator(`#item-p${id}`);
  const approve = card.getByRole("button", { name: "Approve" });
  await card.locator("table.diff").waitFor();
  assert.equal(await approve.isDisabled(), true, "not everything was shown");
  await card.getByRole("button", { name: /^Show all/ }).click();
  await card.getByText("# line 119").waitFor();
  assert.equal(await approve.isDisabled(), false);
  await card.getByRole("button", { name: "Add a note" }).click();
  await card.getByLabel("Note to ada").fill("too many comments");
  await card.getByRole("button", { name: "Deny" }).click();
  await card.waitFor({ state: "detached" });
  assert.equal(await state(id), "denied");
  const { approvals } = await hive.call("pending", { all: true });
  assert.equal(approvals.find((one: { approval_id: number }) => one.approval_id === id).note, "too many comments");
});

test("what was decided elsewhere closes here, and another hash decides nothing", async () => {
  const id = await propose('model = "sonnet"\n', "");
  const card = page.locator(`#item-p${id}`);
  await card.waitFor();
  const stale = await hive.call("approve", { approval_id: id, hash: "0".repeat(64) });
  assert.deepEqual([stale.ok, stale.error.code], [false, "conflict"]);
  assert.equal(await state(id), "pending", "nothing was applied");
  await hive.cli("deny", String(id));
  await card.waitFor({ state: "detached" });
});

test("what this page cannot show as a whole is not approved on it", async () => {
  // Long, and shown: each long file is unfolded by itself.
  const long = Array.from({ length: 2_000 }, (_, line) => `say "${line}" and "more"\n`).join("");
  const shown = await hive.propose("ada", { "agent.toml": 'model = "sonnet"\n', "one.txt": long, "two.txt": long }, "Long files.");
  const card = page.locator(`#item-p${shown}`);
  const approve = card.getByRole("button", { name: "Approve" });
  for (const left of [2, 1]) {
    assert.equal(await approve.isDisabled(), true, `${left} are folded`);
    await card.getByRole("button", { name: /^Show all 2\d{3} lines/ }).first().click();
  }
  assert.equal(await card.getByText('say "1999" and "more"').count(), 2);
  await eventually("all was shown", async () => !(await approve.isDisabled()));
  await card.getByRole("button", { name: "Deny" }).click();
  await card.waitFor({ state: "detached" });
  // Longer than what is shown of one file: its end could be anything.
  const hidden = await hive.propose("ada", { "long.txt": `${"x\n".repeat(6_000)}the end of it\n` }, "A longer file.");
  const cut = page.locator(`#item-p${hidden}`);
  await cut.getByText(`hive-c0re approve ${hidden}`).waitFor();
  const more = cut.getByRole("button", { name: /^Show .* lines$/ });
  while ((await more.count()) > 0) await more.first().click();
  assert.equal(await cut.getByText("the end of it").count(), 0);
  assert.equal(await cut.getByRole("button", { name: "Approve" }).isDisabled(), true);
  await cut.getByRole("button", { name: "Deny" }).click();
  await cut.waitFor({ state: "detached" });
});

test("on a phone a change is read and decided", async () => {
  const id = await propose('model = "haiku"\n', "For a phone.");
  const phone = await open(browser, await hive.link(), { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await live(phone.page);
  const card = phone.page.locator(`#item-p${id}`);
  await card.locator("td.added").first().waitFor();
  assert.ok((await phone.page.evaluate(() => document.documentElement.scrollWidth)) <= 360, "nothing is cut off");
  for (const name of ["Approve", "Deny", "Add a note"]) {
    const box = await card.getByRole("button", { name }).boundingBox();
    assert.ok(box !== null && box.height >= 44, `${name} is ${box?.height} px high`);
  }
  await card.getByRole("button", { name: "Deny" }).tap();
  await card.waitFor({ state: "detached" });
  assert.equal(await state(id), "denied");
  await phone.page.context().close();
});

test("D1 a spawn that is requested waits for its approval", async () => {
  await page.getByLabel("Name").fill("eve");
  await page.getByRole("button", { name: "Request spawn" }).click();
  const card = page.locator("li.card", { hasText: "a new agent" });
  await card.getByText("eve").first().waitFor();
  await card.getByRole("button", { name: "Deny" }).click();
  await card.waitFor({ state: "detached" });
  assert.equal((await hive.call("list")).agents.length, 1, "there is no eve");
});
