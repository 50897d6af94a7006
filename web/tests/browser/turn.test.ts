// An agent at work: the real engine with a scripted model, watched and steered from the page.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Browser, launch, live, open, type Page } from "./browser.ts";
import { Hive } from "./hive.ts";

let hive: Hive;
let browser: Browser;
let page: Page;
before(async () => {
  [hive, browser] = await Promise.all([Hive.start({ scenario: "pages.toml" }), launch()]);
  await hive.cli("spawn", "ada", "--runtime", "process");
  ({ page } = await open(browser, await hive.link()));
  await live(page);
  await page.getByRole("link", { name: "ada" }).click();
  await page.locator("[data-state=idle]").waitFor();
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

async function say(text: string): Promise<void> {
  await page.getByLabel("Message to ada").fill(text);
  await page.keyboard.press("Enter");
}

/** Waits until the turn whose beginning has these words is over: turns that somebody else began do not count. */
async function ended(words: string): Promise<void> {
  const begun = page.locator(".row.turn", { hasText: words }).last();
  await begun.locator("xpath=following-sibling::div[contains(concat(' ', @class, ' '), ' end ')]").first().waitFor();
}

/** Says something, and waits until the agent has dealt with it and is at rest. */
async function turn(words: string): Promise<void> {
  await say(words);
  await ended(words);
  await page.locator(".agent-header [data-state=idle]").waitFor();
}

test("D5 a message is sent and its turn watched live", async () => {
  await turn("hello there");
  await page.getByText("◆ TURN ← operator").last().waitFor();
  await page.locator(".row.text", { hasText: "You said: hello there" }).waitFor();
  await page.locator(".row.end", { hasText: "✓ turn ok" }).last().waitFor();
  assert.equal(await page.getByLabel("Message to ada").inputValue(), "", "the box is empty again");
});

test("D5 a file that is written shows as a change, thinking is folded, and the note can be read", async () => {
  await turn("remember the milk");
  const call = page.locator(".row.tool", { hasText: "Write" }).last();
  await call.locator("table.diff td.added", { hasText: "the milk" }).waitFor();
  await page.locator(".row.text", { hasText: "Done with" }).last().locator("strong").waitFor();
  const thinking = page.locator("details.thinking");
  if ((await thinking.count()) > 0) assert.equal(await thinking.last().getAttribute("open"), null);
  await page.getByRole("tab", { name: "notes" }).click();
  await page.getByRole("button", { name: "notes/" }).click();
  await page.getByRole("button", { name: "the milk.md" }).click();
  await page.getByRole("heading", { name: "A note" }).waitFor();
  await page.getByRole("tab", { name: "live" }).click();
});

test("B2 a background command shows as a task with its output", async () => {
  const go = join(hive.root, "go");
  await turn(`run printf 'red \\033[31mink\\033[0m'; until [ -e ${go} ]; do sleep 0.1; done; echo end-of-it`);
  await page.getByRole("tab", { name: "tasks" }).click();
  await page.getByRole("button", { name: /printf/ }).click();
  await page.locator(".tail .ink-1", { hasText: "ink" }).waitFor();
  writeFileSync(go, "");
  await page.locator(".tail", { hasText: "end-of-it" }).waitFor();
  await page.getByText("exit code 0").waitFor();
  await page.getByRole("tab", { name: "live" }).click();
  // Its end wakes the agent: a turn that nobody here began, and that is over before the next test.
  await ended("bash-task");
  await page.locator(".agent-header [data-state=idle]").waitFor();
});

test("T17 T19 T23 the model, a new session and a compaction, by command and by button", async () => {
  await say("/model opus");
  await page.locator(".facts", { hasText: "opus" }).waitFor();
  await page.getByRole("button", { name: "New session" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator(".toast", { hasText: "The next turn begins a new session." }).waitFor();
  await turn("anew");
  await say("/compact");
  await page.locator(".row.note", { hasText: "compacted" }).first().waitFor();
  // The box takes the next line while the one before is still on its way.
  await say("/mdoel x");
  await page.getByText("There is no command /mdoel").waitFor();
  await page.getByLabel("Message to ada").fill("/help");
  await page.keyboard.press("Enter");
  await page.getByText("stop the running turn").waitFor();
});

test("C18 a turn that takes too long is interrupted", async () => {
  await say("slowly please");
  await page.locator(".agent-header [data-state=thinking]").waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await ended("slowly please");
  await page.locator(".agent-header [data-state=idle]").waitFor();
});

test("the plug pulled: the page says so, comes back, and shows each event once", async () => {
  await turn("before the fall");
  await hive.kill();
  await page.locator(".link-state.lost").first().waitFor();
  await hive.launch();
  await live(page);
  await page.locator("[data-state=idle]").waitFor();
  await turn("after the fall");
  for (const text of ["before the fall", "after the fall"]) {
    assert.equal(await page.locator(".row.text", { hasText: `You said: ${text}` }).count(), 1, text);
  }
  assert.equal(await page.locator(".row.gap").count(), 0, "nothing is missing");
});

test("a stopped agent shows its past from the host's own log", async () => {
  await hive.cli("kill", "ada");
  await page.reload();
  await live(page);
  await page.locator(".agent-header [data-state=stopped]").waitFor();
  await page.locator(".row.text", { hasText: "You said: after the fall" }).waitFor();
  await page.getByRole("tab", { name: "statistics" }).click();
  await page.getByRole("img", { name: /^Turns:/ }).waitFor();
  const turns = await page.getByRole("region", { name: "Turns, newest first" }).locator("tbody tr").count();
  assert.equal(await page.getByRole("img", { name: /^Time by turn:/ }).locator("rect").count(), turns, "each turn has a bar, also two of one minute");
});

test("an agent's own port has its page, and its token opens nothing else", async () => {
  const own = await open(browser, await hive.link("ada"));
  await live(own.page);
  await own.page.getByRole("heading", { name: "ada" }).waitFor();
  await own.page.locator(".row.end").first().waitFor();
  const token = await own.page.evaluate(() => localStorage.getItem("hive-token"));
  const answer = await fetch(`${hive.address}/api/state`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 401);
  assert.deepEqual(own.complaints, []);
  await own.page.context().close();
});
