// Debian's Chromium, driven by playwright-core, with what every test wants to know of a page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { PATIENCE } from "./hive.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export type { Browser, BrowserContext, Page };

export function launch(): Promise<Browser> {
  // No sandbox of its own: tests run as root in containers, and the pages are ours.
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
}

/** With `HIVE_PAGES_DIST` the pages come from that directory instead of the daemon, with its headers. */
async function fresh(context: BrowserContext): Promise<void> {
  const dist = process.env.HIVE_PAGES_DIST;
  if (dist === undefined) return;
  await context.route(/^http:\/\/[^/]+\/(#.*)?$/, async (route) => {
    const answer = await route.fetch();
    const kind = /content="(agent|dashboard)"/.exec(await answer.text())?.[1] ?? "dashboard";
    const shell = readFileSync(`${dist}/index.html`, "utf8").replace('content="dashboard"', `content="${kind}"`);
    await route.fulfill({ response: answer, body: shell });
  });
  await context.route("**/assets/*", (route) => route.fulfill({ path: `${dist}${new URL(route.request().url()).pathname}` }));
}

/** A page in a profile of its own. What it complains of in its console is kept in `complaints`. */
export async function open(
  browser: Browser,
  link: string,
  settings: Parameters<Browser["newContext"]>[0] = {},
): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, colorScheme: "dark", ...settings });
  context.setDefaultTimeout(PATIENCE);
  await fresh(context);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(link);
  return { page, complaints };
}

/** Waits until what is on the screen is live. */
export async function live(page: Page): Promise<void> {
  await page.locator(".link-state.live").first().waitFor();
}

/** Fails with what axe finds serious. */
export async function accessible(page: Page, where: string): Promise<void> {
  // Injected by the debugger, so the page's own policy stays as it is.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    const { violations } = await (globalThis as any).axe.run(document, { resultTypes: ["violations"] });
    // eslint-disable-next-line @typescript-eslint/no-explicit-any
    return violations.filter((one: any) => one.impact === "serious" || one.impact === "critical").map((one: any) => {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any
      return `${one.id}: ${one.nodes.slice(0, 3).map((node: any) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`;
    });
  });
  assert.deepEqual(found, [], where);
}

/** Waits until `check` holds. */
export async function eventually<T>(what: string, check: () => Promise<T | undefined | false>): Promise<T> {
  const until = Date.now() + PATIENCE;
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > until) throw new Error(`never happened: ${what}`);
    await new Promise((wake) => setTimeout(wake, 50));
  }
}
