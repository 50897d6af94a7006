// How fast the pages are: from the event log to readers and to the screen, the first paint, and what
// a larger hive costs. `make bench` runs it against the release build; a missed target is said, and
// fails nothing.

import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { type Browser, launch, live, open } from "../browser/browser.ts";
import { Hive } from "../browser/hive.ts";
import { said } from "../browser/peer.ts";
import { seed } from "../browser/seed.ts";

const quick = process.argv.includes("--quick");
const EVENTS = quick ? 3_000 : 20_000;
const SAMPLES = quick ? 20 : 60;
/** Requests before the first that counts. */
const WARM = 5;
const CONFIG = "[limits]\nevents_per_agent = 200000\nevent_mib_per_agent = 256\nsend_burst = 100000\n";

const quantile = (values: number[], q: number): number => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? NaN;
const round = (value: number, digits = 1): number => Number(value.toFixed(digits));

/** Reads a stream until an event holds these words; tells when. */
async function readUntil(hive: Hive, words: string, ready: () => void): Promise<number> {
  const answer = await fetch(`${hive.address}/api/agents/a0/events?recent=0`, { headers: { authorization: `Bearer ${hive.token}` } });
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) throw new Error("no stream");
  ready();
  let tail = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the stream ended");
    tail = tail.slice(-200) + value;
    if (tail.includes(words)) {
      await reader.cancel();
      return performance.now();
    }
  }
}

async function throughput(hive: Hive, subscribers: number): Promise<object> {
  const writer = hive.peer("a0");
  const last = `the last of ${subscribers} ${Math.random()}`;
  let waiting = subscribers;
  let go: () => void = () => undefined;
  const ready = new Promise<void>((done) => (go = done));
  const readers = Array.from({ length: subscribers }, () => readUntil(hive, last, () => --waiting === 0 && go()));
  await ready;
  const began = performance.now();
  await writer.post(...Array.from({ length: EVENTS }, (_, line) => ({ kind: "stream", data: { value: said(`line ${line}`) } })), { kind: "note", data: { text: last } });
  const stored = performance.now();
  const ends = await Promise.all(readers);
  writer.close();
  const seconds = (Math.max(...ends) - began) / 1000;
  return { subscribers, events: EVENTS, stored_per_second: Math.round(EVENTS / ((stored - began) / 1000)), per_subscriber_per_second: Math.round(EVENTS / seconds), all_together_per_second: Math.round((EVENTS * subscribers) / seconds) };
}

/** From before an event is posted until it is on the screen, in the page's own clock. */
async function latency(hive: Hive, browser: Browser): Promise<object> {
  const { page } = await open(browser, await hive.link());
  await live(page);
  await page.goto(`${hive.address}/#/agent/a1`);
  await page.locator(".agent-header").waitFor();
  const writer = hive.peer("a1");
  await writer.post({ kind: "note", data: { text: "warm" } });
  await page.getByText("warm").waitFor();
  const times: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    const words = `sample ${sample} ${Math.random()}`;
    const painted = page.evaluate((wanted) => new Promise<number>((done) => {
      const seen = new MutationObserver(() => {
        if (document.body.textContent?.includes(wanted) !== true) return;
        seen.disconnect();
        requestAnimationFrame(() => done(Date.now()));
      });
      seen.observe(document.body, { childList: true, subtree: true, characterData: true });
    }), words);
    await page.evaluate(() => undefined); // The observer is there.
    const began = Date.now();
    await writer.post({ kind: "note", data: { text: words } });
    times.push((await painted) - began);
  }
  writer.close();
  await page.context().close();
  return { samples: SAMPLES, median_ms: round(quantile(times, 0.5)), p95_ms: round(quantile(times, 0.95)) };
}

async function firstPaint(hive: Hive, browser: Browser, agents: number): Promise<object> {
  const paints: number[] = [];
  const lives: number[] = [];
  for (let sample = 0; sample < (quick ? 3 : 7); sample++) {
    const { page } = await open(browser, await hive.link());
    const opened = Date.now();
    await page.locator("table.fleet").waitFor();
    await live(page);
    lives.push(Date.now() - opened);
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN));
    await page.context().close();
  }
  return { agents, first_contentful_paint_ms: round(quantile(paints, 0.5)), fleet_and_live_after_load_ms: round(quantile(lives, 0.5)) };
}

interface Answer {
  agents: number;
  median_ms: number;
  bytes: number;
}

/** `/api/state` of each hive, in turns, so that what else the machine does is the same for all. */
async function state(hives: [agents: number, hive: Hive][]): Promise<Answer[]> {
  const found = hives.map(([agents, hive]) => ({ agents, hive, times: [] as number[], bytes: 0 }));
  for (let sample = 0; sample < WARM + SAMPLES; sample++) {
    for (const one of found) {
      const began = performance.now();
      const answer = await fetch(`${one.hive.address}/api/state`, { headers: { authorization: `Bearer ${one.hive.token}` } });
      one.bytes = (await answer.text()).length;
      if (sample >= WARM) one.times.push(performance.now() - began);
    }
  }
  return found.map(({ agents, times, bytes }) => ({ agents, median_ms: round(quantile(times, 0.5), 2), bytes }));
}

const dist = fileURLToPath(new URL("../../dist/assets/", import.meta.url));
const bundle = Object.fromEntries(["js", "css"].map((kind) => [
  `${kind}_gzip_bytes`, readdirSync(dist).filter((name) => name.endsWith(`.${kind}.gz`)).reduce((sum, name) => sum + statSync(`${dist}${name}`).size, 0),
]));

const browser = await launch();
const results: Record<string, unknown> = { schema: 1, suite: "pages", host: { cpus: cpus().length, model: cpus()[0]?.model }, quick, bundle, throughput: [], first_paint: [], state: [] };
const hives: [agents: number, hive: Hive][] = [];
for (const agents of [10, 200]) {
  const hive = await Hive.start({ config: CONFIG });
  await seed(hive, { agents, messages: quick ? 200 : 2_000, events: 0 });
  if (agents === 10) {
    for (const subscribers of [1, 20, 100]) (results.throughput as object[]).push(await throughput(hive, subscribers));
    results.event_to_paint = await latency(hive, browser);
  }
  (results.first_paint as object[]).push(await firstPaint(hive, browser, agents));
  hives.push([agents, hive]);
}
const states = await state(hives);
for (const [, hive] of hives) await hive.stop();
await browser.close();
const [small, large] = states as [Answer, Answer];
const ratio = { time: round(large.median_ms / small.median_ms, 2), data: round(large.bytes / small.bytes, 2) };
results.state = states;
results.state_ratio = ratio;
results.targets = [
  { name: "/api/state grows no faster than its data, 10 to 200 agents", measured: ratio.time, target: ratio.data, met: ratio.time <= ratio.data },
  { name: "script of the first load, KB compressed", measured: round((bundle.js_gzip_bytes ?? 0) / 1024), target: 60, met: (bundle.js_gzip_bytes ?? 0) <= 60 * 1024 },
  { name: "style of the first load, KB compressed", measured: round((bundle.css_gzip_bytes ?? 0) / 1024), target: 15, met: (bundle.css_gzip_bytes ?? 0) <= 15 * 1024 },
];
const out = fileURLToPath(new URL("../../../bench/results/", import.meta.url));
mkdirSync(out, { recursive: true });
writeFileSync(`${out}pages.json`, `${JSON.stringify(results, null, 2)}\n`);
console.log(JSON.stringify(results, null, 2));
for (const target of results.targets as { name: string; measured: number; target: number; met: boolean }[]) console.log(`${target.met ? "met   " : "MISSED"} ${target.name}: ${target.measured} (target ${target.target})`);
