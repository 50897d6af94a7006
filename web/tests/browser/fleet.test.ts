// The table of agents: what it says of one that ends by itself.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Browser, eventually, launch, live, open } from "./browser.ts";
import { Hive } from "./hive.ts";

let hive: Hive;
let browser: Browser;
before(async () => {
  const engine = fileURLToPath(new URL("stand-in.sh", import.meta.url));
  const config = `[engine]\ndefault = "${engine}"\n[agents]\nrestart_delay_ms = 1\n`;
  [hive, browser] = await Promise.all([Hive.start({ config }), launch()]);
  for (const name of ["ada", "bob"]) await hive.cli("spawn", name, "--runtime", "process");
  await hive.agent("far");
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

/** Ends an agent's process without asking, and waits until another one runs. */
async function crash(name: string): Promise<void> {
  const pid = async (): Promise<number | undefined> => (await hive.call("list")).agents.find((one: { name: string }) => one.name === name).pid;
  const first = await eventually("it runs", pid);
  process.kill(first, "SIGKILL");
  await eventually("it runs again", async () => ![undefined, first].includes(await pid()));
}

test("C18 restarts that nobody asked for are counted in the table, and a start begins anew", async () => {
  const { page } = await open(browser, await hive.link());
  await live(page);
  const cell = (name: string) => page.locator("table.fleet tr", { hasText: name }).locator("td").nth(7);
  await eventually("none at first", async () => (await cell("bob").innerText()) === "0");
  assert.equal(await cell("far").innerText(), "", "nobody here starts what runs elsewhere");
  await crash("bob");
  await cell("bob").getByText("↻ 1").waitFor();
  await crash("bob");
  await cell("bob").getByText("↻ 2").waitFor();
  assert.match(await cell("bob").locator("time").innerText(), /now|ago/);
  assert.equal(await cell("ada").innerText(), "0");
  await page.getByRole("button", { name: "Restarts" }).click();
  assert.match(await page.locator("table.fleet tbody tr").first().innerText(), /bob/, "the worst one first");

  const phone = await open(browser, await hive.link(), { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await live(phone.page);
  await phone.page.locator("table.fleet tr", { hasText: "bob" }).getByText("↻ 2").waitFor();
  assert.equal(await phone.page.locator("table.fleet tr", { hasText: "ada" }).locator("td").nth(7).isVisible(), false, "nothing to say");
  await phone.page.context().close();

  await hive.cli("restart", "bob");
  await eventually("somebody asked for it", async () => (await cell("bob").innerText()) === "0");
  await page.context().close();
});

test("C18 an emergency stop on the overview ends every agent, after a question, and each can be started again", async () => {
  const { page } = await open(browser, await hive.link());
  await live(page);
  const row = (name: string) => page.locator("table.fleet tr", { hasText: name });
  const stop = page.getByRole("button", { name: "Emergency stop" });
  await stop.click();
  await page.getByRole("button", { name: "No" }).click();
  assert.match(await row("ada").innerText(), /Stop/, "asked, and not done");
  await stop.click();
  await page.getByRole("button", { name: "Yes" }).click();
  for (const name of ["ada", "bob"]) await row(name).getByRole("button", { name: "Start" }).waitFor();
  await eventually("there is nothing left to stop", async () => (await stop.count()) === 0);
  const running = (await hive.call("list")).agents.filter((one: { pid?: number }) => one.pid !== undefined && one.pid !== null);
  assert.deepEqual(running, []);
  await row("ada").getByRole("button", { name: "Start" }).click();
  await row("ada").getByRole("button", { name: "Restart" }).waitFor();
  await page.context().close();
});
