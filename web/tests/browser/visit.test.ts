// Getting in: the printed link, a wrong one, none, and what happens when a session ends.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, launch, live, open } from "./browser.ts";
import { Hive } from "./hive.ts";

let hive: Hive;
let browser: Browser;
before(async () => {
  [hive, browser] = await Promise.all([Hive.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

test("the first visit with the printed link shows what to do", async () => {
  const { page, complaints } = await open(browser, await hive.link());
  await live(page);
  assert.equal(new URL(page.url()).hash, "", "the code is out of the address");
  await page.getByText("Nothing waits for you.").waitFor();
  await page.getByText("There are no agents yet.").waitFor();
  assert.match(await page.title(), /testhive/);
  assert.deepEqual(complaints, []);
  // Nothing that a browser sends by itself, to this port or to another one of this host.
  assert.deepEqual(await page.context().cookies(), []);
  // The way back does not lead to the code.
  await page.getByRole("link", { name: "Settings" }).click();
  await page.goBack();
  await live(page);
  assert.ok(!page.url().includes("code"), page.url());
  // The session survives a reload: the code was used up, the token is kept.
  await page.reload();
  await live(page);
  await page.context().close();
});

test("without a token, and with a wrong one, the page says how to get in", async () => {
  const { page } = await open(browser, hive.address);
  await page.getByRole("heading", { name: "hyperhive" }).waitFor();
  await page.getByText("hive-c0re link").waitFor();
  await page.getByLabel("Code or link").fill("0123456789abcdef0123456789abcdef");
  await page.getByRole("button", { name: "Open the hive" }).click();
  await page.getByRole("alert").getByText("wrong, was used, or is too old").waitFor();
  // A whole link works in the same field.
  await page.getByLabel("Code or link").fill(await hive.link());
  await page.keyboard.press("Enter");
  await live(page);
  await page.context().close();

  const used = await hive.link();
  const first = await open(browser, used);
  await live(first.page);
  const second = await open(browser, used);
  await second.page.getByRole("alert").waitFor();
  await first.page.context().close();
  await second.page.context().close();
});

test("a forged token shows nothing of the hive", async () => {
  const { page } = await open(browser, hive.address);
  await page.evaluate(() => localStorage.setItem("hive-token", "f".repeat(64)));
  await page.reload();
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByText("Needs you").count(), 0);
  assert.equal(await page.evaluate(() => localStorage.getItem("hive-token")), null, "it is thrown away");
  await page.context().close();
});

test("a session that is ended on the host ends in the page, and signing out ends it on the host", async () => {
  const { page } = await open(browser, await hive.link());
  await live(page);
  await page.getByRole("link", { name: "Settings" }).click();
  const token = await page.evaluate(() => localStorage.getItem("hive-token"));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByText("You signed out.").waitFor();
  const answer = await fetch(`${hive.address}/api/state`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 401, "the token is worth nothing any more");
  await page.context().close();

  const other = await open(browser, await hive.link());
  await live(other.page);
  await hive.cli("link", "--rotate");
  await other.page.getByRole("alert").getByText("not good any more").waitFor();
  await other.page.context().close();
});
