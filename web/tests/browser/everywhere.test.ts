// Every page: on a phone, by keyboard alone, and to assistive technology, in both themes, empty and full.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, type Browser, eventually, launch, live, open, type Page } from "./browser.ts";
import { Hive } from "./hive.ts";
import { called, type Peer, returned, said } from "./peer.ts";

const PLACES = ["", "messages", "decisions", "permissions", "schedules", "stats", "log", "settings"];

let hive: Hive;
let browser: Browser;
/** Ada, once there is something on every page. */
let filled: Promise<Peer> | undefined;
before(async () => {
  [hive, browser] = await Promise.all([Hive.start(), launch()]);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

/** Fills the hive with something on every page, once; tests are in no order but that the empty one comes first. */
function full(): Promise<Peer> {
  filled ??= fill();
  return filled;
}

async function fill(): Promise<Peer> {
  const ada = await hive.agent("ada");
  await hive.agent("bob");
  await ada.ask("set_status", { text: "reading the plans" });
  await ada.ask("ask", { question: "Which way?", options: ["left", "right"], ttl_seconds: 3600 });
  await ada.ask("ask", { question: "Which ones?", options: ["a", "b"], multi: true });
  await ada.ask("send", { to: "operator", body: "# Report\n\n- one\n- [two](https://example.test)\n\n| a | b |\n|---|--:|\n| x | 1 |\n" });
  await ada.ask("send", { to: "bob", body: "hello bob" });
  await ada.ask("remind", { message: "stretch", delay_seconds: 9000 });
  await ada.turn(
    "operator", "look at the plans",
    { type: "assistant", message: { id: "m1", usage: { input_tokens: 1200, output_tokens: 40 }, content: [{ type: "thinking", thinking: "hm" }] } },
    called("t1", "Read", { file_path: "/state/plan.md" }), returned("t1", "1\t# Plan\n2\tdo it"),
    called("t2", "Edit", { file_path: "/state/plan.md", old_string: "do it", new_string: "do it now" }), returned("t2", "ok"),
    called("t3", "mcp__bash__run", { cmd: "make" }), returned("t3", "x".repeat(600)),
    called("t4", "WebSearch", { query: "bees" }), returned("t4", "nothing", true),
    said("I **did** it. See `plan.md`."),
  );
  return ada;
}

async function show(page: Page, place: string): Promise<void> {
  await page.goto(`${hive.address}/#/${place}`);
  await page.locator("main").waitFor();
  await eventually("it is loaded", async () => (await page.getByText("Loading").count()) === 0);
}

for (const isFull of [false, true]) {
  test(`axe has nothing serious to say, ${isFull ? "full" : "empty"}, in both themes`, async () => {
    if (isFull) await full();
    const places = isFull ? [...PLACES, "agent/ada"] : [...PLACES, "agent/nobody"];
    for (const colorScheme of ["dark", "light"] as const) {
      const { page } = await open(browser, await hive.link(), { colorScheme });
      await live(page);
      for (const place of places) {
        await show(page, place);
        await accessible(page, `${colorScheme} #/${place}`);
      }
      if (isFull) {
        for (const tab of ["tasks", "notes", "statistics"]) {
          await page.getByRole("tab", { name: tab }).click();
          await accessible(page, `${colorScheme} ${tab}`);
        }
        await page.keyboard.press("Control+k");
        await page.getByRole("dialog").waitFor();
        await accessible(page, `${colorScheme} palette`);
      }
      await page.context().close();
    }
    const { page } = await open(browser, hive.address);
    await page.getByRole("button", { name: "Open the hive" }).waitFor();
    await accessible(page, "sign-in");
    await page.context().close();
  });
}

test("at 360 px nothing is cut off, and everything that decides can be tapped", async () => {
  await full();
  const { page } = await open(browser, await hive.link(), { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });
  await live(page);
  for (const place of [...PLACES, "agent/ada"]) {
    await show(page, place);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `#/${place} is ${wide} px wide`);
  }
  await show(page, "");
  // Nothing lies over its neighbour.
  const boxes = await page.locator("nav[aria-label=Pages] a").evaluateAll((links) => links.map((link) => [link.getBoundingClientRect().left, link.getBoundingClientRect().left + link.scrollWidth]));
  boxes.forEach(([, right], index) => assert.ok((right ?? 0) <= (boxes[index + 1]?.[0] ?? Infinity) + 1, `link ${index} of the navigation`));
  const card = page.locator("li.card", { hasText: "Which way?" });
  for (const target of await card.locator("button, label.option").all()) {
    const box = await target.boundingBox();
    assert.ok(box !== null && box.height >= 44, `${await target.innerText()} is ${box?.height} px high`);
  }
  await card.getByText("left", { exact: true }).tap();
  await card.getByRole("button", { name: "Answer" }).tap();
  await card.waitFor({ state: "detached" });
  await page.context().close();
});

test("everything works by keyboard alone", async () => {
  const ada = await full();
  const { page } = await open(browser, await hive.link());
  await live(page);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");

  const { question_id } = await ada.ask("ask", { question: "By keys?", options: ["yes", "no"] });
  const card = page.locator(`#item-q${question_id}`);
  await card.waitFor();
  await eventually("j comes to it", async () => {
    await page.keyboard.press("j");
    return card.evaluate((element) => element === document.activeElement);
  });
  await page.keyboard.press("Tab"); // its link
  await page.keyboard.press("Tab"); // the first option
  await page.keyboard.press("Space");
  await card.focus();
  await page.keyboard.press("a");
  await card.waitFor({ state: "detached" });
  const { questions } = await hive.call("questions", { all: true });
  assert.equal(questions.find((one: { question_id: number }) => one.question_id === question_id)?.answer, "yes");

  await page.keyboard.press("Control+k");
  await page.keyboard.type("agent ada");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "ada", level: 1 }).waitFor();
  await page.getByLabel("Message to ada").focus();
  await page.keyboard.type("by hand");
  await page.keyboard.press("Enter");
  await eventually("it arrives", async () => {
    const { messages } = await ada.ask("recv", { wait_seconds: 5, max: 32 });
    return messages.some((message: { body: string }) => message.body === "by hand");
  });
  await eventually("the page has heard so too", async () => (await page.getByLabel("Message to ada").inputValue()) === "");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.getByLabel("Message to ada").inputValue(), "by hand", "what was said is recalled");

  // Everything that has the focus shows it.
  await page.goto(`${hive.address}/#/`);
  await page.reload();
  await live(page);
  for (let step = 0; step < 12; step++) {
    await page.keyboard.press("Tab");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement as Element).outlineStyle);
    assert.notEqual(outline, "none", `step ${step}`);
  }
  await page.context().close();
});

test("D8 the original's spelling and the colours are switches that stay", async () => {
  await full();
  const { page } = await open(browser, await hive.link());
  await live(page);
  await show(page, "settings");
  await page.getByLabel("Spell buttons like the original").check();
  await page.getByLabel("Colours").selectOption("light");
  await show(page, "");
  await page.reload();
  await page.getByRole("button", { name: "DESTR0Y" }).first().waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.colours), "light");
  await page.context().close();
});
