// What needs the operator: questions of each kind, dead letters, mail, and two tabs that decide the same.

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
  [hive, browser] = await Promise.all([Hive.start({ config: "[limits]\ndeliveries_before_dead = 1\n" }), launch()]);
  ada = await hive.agent("ada");
  ({ page } = await open(browser, await hive.link()));
  await live(page);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

async function answerTo(id: number): Promise<string> {
  return eventually("the question is answered", async () => {
    const { questions } = await hive.call("questions", { all: true });
    const found = questions.find((one: { question_id: number }) => one.question_id === id);
    return found?.answer ?? undefined;
  });
}

/** The message with this body; whatever else waits is taken too. */
async function received(body: string): Promise<{ in_reply_to: number | null }> {
  return eventually(`ada gets “${body}”`, async () => {
    const { messages } = await ada.ask("recv", { wait_seconds: 5, max: 32 });
    return messages.find((message: { body: string }) => message.body === body);
  });
}

test("D3 one of several, several of several, and free text", async () => {
  const one = await ada.ask("ask", { question: "Which colour?", options: ["red", "blue"] });
  const card = page.locator("li.card", { hasText: "Which colour?" });
  await card.getByLabel("red", { exact: true }).check();
  await card.getByLabel("blue", { exact: true }).check();
  assert.equal(await card.getByLabel("red", { exact: true }).isChecked(), false, "one of them");
  await card.getByRole("button", { name: "Answer" }).click();
  assert.equal(await answerTo(one.question_id), "blue");
  await card.waitFor({ state: "detached" });

  const several = await ada.ask("ask", { question: "Which fruits?", options: ["apple", "pear", "plum"], multi: true });
  const fruits = page.locator("li.card", { hasText: "Which fruits?" });
  await fruits.getByLabel("apple").check();
  await fruits.getByLabel("plum").check();
  await fruits.getByLabel("own words").fill("and nuts");
  await fruits.getByRole("button", { name: "Answer" }).click();
  assert.equal(await answerTo(several.question_id), "apple, plum, and nuts");

  const free = await ada.ask("ask", { question: "What is its name?" });
  const named = page.locator("li.card", { hasText: "What is its name?" });
  assert.equal(await named.getByRole("button", { name: "Answer" }).isDisabled(), true, "nothing to say yet");
  await named.getByLabel("own words").fill("Ada");
  await page.keyboard.press("Enter");
  assert.equal(await answerTo(free.question_id), "Ada");
});

test("an expired question is gone from the list and shown as expired", async () => {
  await ada.ask("ask", { question: "Too late?", ttl_seconds: 1 });
  const card = page.locator("li.card", { hasText: "Too late?" });
  await card.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Decisions" }).click();
  await page.locator("li.card", { hasText: "Too late?" }).getByText("expired without an answer").waitFor();
  await page.getByRole("link", { name: /^Overview/ }).click();
});

test("two tabs decide the same item: one wins, both see it", async () => {
  const other = await open(browser, await hive.link());
  await live(other.page);
  const { question_id } = await ada.ask("ask", { question: "Left or right?", options: ["left", "right"] });
  const cards = [page, other.page].map((one) => one.locator("li.card", { hasText: "Left or right?" }));
  await cards[0]!.getByLabel("left").check();
  await cards[1]!.getByLabel("right").check();
  await Promise.all(cards.map((card) => card.getByRole("button", { name: "Answer" }).click().catch(() => undefined)));
  const answer = await answerTo(question_id);
  assert.match(answer, /^(left|right)$/);
  for (const card of cards) await card.waitFor({ state: "detached" });
  // Exactly one was told that it came too late, unless its card was gone before the click.
  assert.equal(await answerTo(question_id), answer, "it is not answered twice");
  await other.page.context().close();
});

test("D2 mail to the operator is answered in its thread and closes in every tab", async () => {
  const other = await open(browser, await hive.link());
  await live(other.page);
  const { message_id } = await ada.ask("send", { to: "operator", body: "The **build** is green" });
  const card = page.locator("li.card", { hasText: "The build is green" });
  await card.locator("strong", { hasText: "build" }).waitFor();
  assert.match(await page.title(), /^\(1\)/, "the count is in the title");
  await other.page.locator("li.card", { hasText: "green" }).waitFor();
  await card.getByRole("button", { name: "Reply" }).click();
  await card.getByRole("textbox").fill("Ship it");
  await card.getByRole("button", { name: "Send reply" }).click();
  await card.waitFor({ state: "detached" });
  await other.page.locator("li.card", { hasText: "green" }).waitFor({ state: "detached" });
  const got = await received("Ship it");
  assert.equal(got.in_reply_to, message_id);
  await other.page.context().close();
});

test("long mail shows its beginning first, and all mail is done at once after a question", async () => {
  await ada.ask("send", { to: "operator", body: `A long story.\n\n${"And so on.\n\n".repeat(60)}The end of it.` });
  await ada.ask("send", { to: "operator", body: "A short one." });
  const long = page.locator("li.card", { hasText: "A long story." });
  const height = async (): Promise<number> => (await long.boundingBox())?.height ?? 0;
  await long.getByRole("button", { name: "Show all of it" }).click();
  await eventually("all of it is there", async () => (await height()) > 1000);
  await long.getByRole("button", { name: "Show less" }).click();
  await eventually("only its beginning is there", async () => (await height()) < 600);
  await page.getByRole("button", { name: "Done with all mail" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.locator("li.card[data-kind=mail]").first().waitFor({ state: "detached" });
  assert.equal((await hive.call("inbox")).messages.length, 0);
});

test("C18 a dead letter is delivered again, or thrown away after a question", async () => {
  const kill = async (body: string): Promise<void> => {
    const turn = `turn ${body}`;
    await ada.ask("recv", { max: 32 }); // Nothing else is in the way.
    await hive.call("send", { to: "ada", body });
    await ada.ask("recv", { turn, wait_seconds: 10 });
    await ada.ask("requeue_inflight", { turn, reason: "failed" });
  };
  await kill("first try");
  const first = page.locator("li.card", { hasText: "first try" });
  await first.getByRole("button", { name: "Deliver again" }).click();
  await first.waitFor({ state: "detached" });
  await received("first try");

  await kill("second try");
  const second = page.locator("li.card", { hasText: "second try" });
  await second.getByRole("button", { name: "Discard" }).click();
  await second.getByRole("button", { name: "No" }).click();
  await second.getByRole("button", { name: "Discard" }).click();
  await second.getByRole("button", { name: "Yes" }).click();
  await second.waitFor({ state: "detached" });
  const { messages } = await hive.call("dead");
  assert.equal(messages.length, 0);
});

test("an item has an address of its own, and says so when it is decided", async () => {
  const { question_id } = await ada.ask("ask", { question: "Linked?" });
  await page.goto(`${hive.address}/#/item/q${question_id}`);
  const card = page.locator(`#item-q${question_id}`);
  await card.waitFor();
  await eventually("it has the focus", () => card.evaluate((element) => element === document.activeElement));
  await hive.call("answer", { question_id, answer: "yes" });
  await page.getByText("This item is no longer open").waitFor();
});
