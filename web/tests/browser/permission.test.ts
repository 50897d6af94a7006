// C14 permissions: a tick changes what the host allows at once; schedules and reminders are shown.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, eventually, launch, live, open, type Page } from "./browser.ts";
import { Hive } from "./hive.ts";
import type { Peer } from "./peer.ts";

let hive: Hive;
let browser: Browser;
let ada: Peer;
let page: Page;
before(async () => {
  [hive, browser] = await Promise.all([Hive.start(), launch()]);
  ada = await hive.agent("ada");
  ({ page } = await open(browser, await hive.link()));
  await live(page);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

test("C14 a tool that is taken away is refused at once, and works again when it is given back", async () => {
  await page.getByRole("link", { name: "Permissions" }).click();
  const tick = page.getByLabel("ada: messaging");
  assert.equal(await tick.isChecked(), true);
  await ada.ask("send", { to: "operator", body: "before" });
  await tick.click();
  await page.getByText("ada no longer has messaging").waitFor();
  await eventually("it shows", async () => !(await tick.isChecked()));
  await assert.rejects(ada.ask("send", { to: "operator", body: "without" }), /denied/);
  await tick.click();
  await page.getByText("ada now has messaging").waitFor();
  await ada.ask("send", { to: "operator", body: "after" });
  const { messages } = await hive.call("inbox");
  assert.deepEqual(messages.map((message: { body: string }) => message.body), ["before", "after"]);
});

test("D4 schedules and reminders are shown and deleted", async () => {
  await page.getByLabel("ada: scheduling").click();
  await page.getByText("ada now has scheduling").waitFor();
  await ada.ask("schedule", { prompt: "water the plants", cron: "0 9 * * *" });
  await ada.ask("remind", { message: "stretch a little", delay_seconds: 5000 });
  await page.getByRole("link", { name: "Schedules" }).click();
  for (const words of ["water the plants", "stretch a little"]) {
    const row = page.locator("tr", { hasText: words });
    await row.getByRole("button", { name: "Delete" }).click();
    await row.getByRole("button", { name: "Yes" }).click();
    await row.waitFor({ state: "detached" });
  }
  assert.equal((await hive.call("schedules")).schedules.length, 0);
});

test("D4 the log shows what happened before the page was opened, and finds in it", async () => {
  const late = await open(browser, await hive.link());
  await live(late.page);
  await late.page.goto(`${hive.address}/#/log`);
  const rows = late.page.locator("table.events tbody tr");
  await rows.filter({ hasText: "message_stored" }).first().waitFor();
  await late.page.getByLabel("Filter events").fill("BEFORE");
  await eventually("only what matches is left", async () => (await rows.count()) > 0 && (await rows.filter({ hasNotText: /before/i }).count()) === 0);
  await rows.first().locator("summary").click();
  await rows.first().locator("pre", { hasText: '"body": "before"' }).waitFor();
  await ada.ask("send", { to: "operator", body: "before long" });
  await rows.filter({ hasText: "before long" }).waitFor();
  await late.page.context().close();
});
