// A large hive: the page holds a window of it, and one stream, however much there is.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, eventually, launch, live, open } from "./browser.ts";
import { Hive } from "./hive.ts";
import { said } from "./peer.ts";
import { seed } from "./seed.ts";

const AGENTS = 200;
const MESSAGES = Number(process.env.HIVE_SCALE_MESSAGES ?? 5_000);
const EVENTS = Number(process.env.HIVE_SCALE_EVENTS ?? 50_000);
/** The most elements on a page, however large the hive. */
const ELEMENTS = 12_000;

let hive: Hive;
let browser: Browser;
before(async () => {
  const config = "[limits]\nevents_per_agent = 100000\nevent_mib_per_agent = 256\nsend_burst = 100000\n";
  [hive, browser] = await Promise.all([Hive.start({ config }), launch()]);
  await seed(hive, { agents: AGENTS, messages: MESSAGES, events: EVENTS });
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

test(`${AGENTS} agents, many messages and a long transcript stay within bounds`, async () => {
  const { page, complaints } = await open(browser, await hive.link());
  let streams = 0;
  page.on("request", (request) => request.url().includes("/events") && streams++);
  await live(page);
  const elements = (): Promise<number> => page.evaluate(() => document.querySelectorAll("*").length);
  await page.getByRole("heading", { name: `Agents ${AGENTS}` }).waitFor();
  assert.ok((await elements()) < ELEMENTS, `overview: ${await elements()} elements`);
  await page.getByLabel("Filter agents").fill("a199");
  await page.getByRole("link", { name: "a199" }).waitFor();
  assert.equal(await page.locator("table.fleet tbody tr").count(), 1);

  await page.goto(`${hive.address}/#/messages`);
  await page.locator("li.message").first().waitFor();
  for (let pages = 0; pages < 8; pages++) {
    const last = await page.locator("li.message").last().getAttribute("id");
    await page.getByRole("button", { name: "Older" }).click();
    await eventually("older ones come", async () => (await page.locator("li.message").last().getAttribute("id")) !== last);
  }
  assert.ok((await elements()) < ELEMENTS, `messages: ${await elements()} elements`);

  await page.goto(`${hive.address}/#/agent/a0`);
  await page.locator(".row", { hasText: `line ${EVENTS - 1} ` }).waitFor();
  const log = page.getByRole("log");
  let rows = 0;
  for (let pages = 0; pages < 12; pages++) {
    await log.evaluate((element) => {
      element.scrollTop = 0;
    });
    await eventually("it has settled", async () => (await page.getByText("Loading earlier").count()) === 0);
    rows = Math.max(rows, await page.locator(".row").count());
  }
  assert.ok(rows <= 250, `${rows} rows at once`);
  assert.ok((await elements()) < ELEMENTS, `transcript: ${await elements()} elements`);
  // A link to an old event finds it.
  await page.getByRole("button", { name: /to the end|new/ }).click();
  await page.locator(".row", { hasText: `line ${EVENTS - 1} ` }).waitFor();
  assert.ok(streams <= 4, `${streams} streams were opened for one tab`);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("a flood of events does not pile up on the page", async () => {
  const { page } = await open(browser, await hive.link());
  await live(page);
  await page.goto(`${hive.address}/#/agent/a1`);
  await page.locator(".agent-header").waitFor();
  const flood = await hive.peer("a1");
  await flood.turn("operator", "flood", ...Array.from({ length: 3_000 }, (_, line) => said(`flood ${line} .`)));
  await page.locator(".row", { hasText: "flood 2999 ." }).waitFor();
  assert.ok((await page.locator(".row").count()) <= 250);
  flood.close();
  await page.context().close();
});

test("the end is followed while rows grow, and left only by the reader", async () => {
  const { page } = await open(browser, await hive.link());
  // The host's rendering comes late, and makes every row much higher.
  let held: (() => void)[] | undefined = [];
  await page.route("**/api/render", async (route) => {
    if (held !== undefined) await new Promise<void>((go) => held?.push(go));
    await route.continue();
  });
  await live(page);
  await page.goto(`${hive.address}/#/agent/a2`);
  await page.locator(".agent-header").waitFor();
  const peer = hive.peer("a2");
  const tall = (line: number): unknown => said(`growing ${line}\n${"# a heading\n".repeat(12)}`);
  await peer.turn("operator", "grow", ...Array.from({ length: 20 }, (_, line) => tall(line)));
  await page.locator(".row.end").waitFor();
  const fromEnd = (): Promise<number> => page.getByRole("log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
  await eventually("it is at the end", async () => (await fromEnd()) < 2);
  held.forEach((go) => go());
  held = undefined;
  await eventually("they have grown", async () => (await page.locator(".row.text h4").count()) === 20 * 12);
  await eventually("it is still at the end", async () => (await fromEnd()) < 2);
  assert.equal(await page.locator(".pill").count(), 0);

  await page.getByRole("log").hover();
  await page.mouse.wheel(0, -600);
  await page.getByRole("button", { name: "to the end" }).waitFor();
  await peer.post({ kind: "note", data: { text: "one more" } });
  await page.getByRole("button", { name: "1 new" }).click();
  await eventually("it is at the end again", async () => (await fromEnd()) < 2);
  peer.close();
  await page.context().close();
});
