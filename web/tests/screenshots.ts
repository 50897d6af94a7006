// Pictures of the pages, of a hive made for it: node --import tsx tests/screenshots.ts OUT_DIR [light]
// Agents are spoken for by this script, so that the pictures are the same on every machine.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { eventually, launch, live, open, type Page } from "./browser/browser.ts";
import { Hive } from "./browser/hive.ts";
import { called, type Peer, returned } from "./browser/peer.ts";

const [out = "shots", theme = "dark"] = process.argv.slice(2);
mkdirSync(out, { recursive: true });

async function tell(hive: Hive): Promise<void> {
  const names = ["ruth", "ada", "bob"];
  const [ruth, ada, bob] = (await Promise.all(names.map((name) => hive.agent(name)))) as [Peer, Peer, Peer];
  await ruth.ask("set_status", { text: "watching over the release" });
  await ada.ask("set_status", { text: "writing the migration test" });
  await bob.ask("set_status", { text: "reading the forge's notifications" });
  await ada.ask("send", { to: "bob", body: "The schema is in `crates/hive-store`; could you look at the third migration?" });
  const asked = await bob.ask("recv", { turn: "b1" });
  await bob.ask("send", { to: "ada", body: "Looks good. One thing: the index is missing on `due_at`.", in_reply_to: asked.messages[0].id });
  await ada.ask("send", { to: "operator", body: "The migration is ready.\n\n- **14** tests pass\n- the index on `due_at` was missing, now it is there\n\nShall I ask for the merge?" });
  await ada.ask("ask", { question: "The release notes mention the old flag. What shall I do?", options: ["drop it", "keep it for one release", "ask bob"], ttl_seconds: 7200 });
  await bob.ask("remind", { message: "look at the forge again", delay_seconds: 1500 });
  const now = new Date();
  for (const [peer, turns] of [[ada, 14], [bob, 6], [ruth, 3]] as const) {
    for (let turn = 0; turn < turns; turn++) {
      const at = new Date(now.getTime() - (turn % 10) * 86_400_000 - turn * 60_000);
      await peer.ask("post_turn_counts", {
        turn: `t${turn}`, kind: "mail", started_at: at.toISOString(), duration_ms: 9_000 + turn * 1_700, engine_ms: 8_000, model: "haiku",
        input_tokens: 900 + turn * 40, output_tokens: 300 + turn * 25, cache_read_tokens: 22_000 + turn * 900, cache_creation_tokens: 1_500,
        cost_micro_usd: 21_000 + turn * 3_000, context_tokens: 40_000 + turn * 3_000, window: 200_000, outcome: turn === 4 ? "failed" : "ok", messages: [], tools: [{ name: "Read", count: 3 }],
      });
    }
  }
}

/** A turn to look at. */
async function work(peer: Peer): Promise<void> {
  await peer.ask("set_status", { text: "testing the third migration" });
  await peer.turn(
    "operator", "Please write a test for the third migration, and tell bob.",
    { type: "assistant", message: { id: "m1", usage: { input_tokens: 1200, cache_read_input_tokens: 21_000, output_tokens: 64 }, content: [{ type: "thinking", thinking: "First the migration itself." }] } },
    called("t1", "Read", { file_path: "/state/migrations/0003.sql" }), returned("t1", "1\tCREATE TABLE reminders (\n2\t  id INTEGER PRIMARY KEY,\n3\t  agent TEXT NOT NULL,\n4\t  due_at INTEGER NOT NULL\n5\t);"),
    called("t2", "Edit", { file_path: "/state/migrations/0003.sql", old_string: "  due_at INTEGER NOT NULL\n);", new_string: "  due_at INTEGER NOT NULL\n);\nCREATE INDEX reminders_due ON reminders (due_at); -- oldest first" }), returned("t2", "ok"),
    called("t3", "mcp__bash__run", { cmd: "cargo nextest run -p hive-store migrations" }),
    returned("t3", JSON.stringify({ status: "done", summary: "done, exit code 0, 6.1 s", exit_code: 0, stdout: "    \u001b[32;1mStarting\u001b[0m 14 tests across 1 binary\n        \u001b[32;1mPASS\u001b[0m [   0.412s] migrations_apply_in_order\n        \u001b[32;1mPASS\u001b[0m [   0.533s] every_version_migrates\n     \u001b[32;1mSummary\u001b[0m 14 tests run: \u001b[32;1m14 passed\u001b[0m, 0 skipped", stderr: "" })),
    called("t4", "mcp__hyperhive__send", { to: "bob", body: "The index is there now, and a test that every older version migrates." }), returned("t4", "message_id 5"),
    { type: "assistant", message: { id: "m2", usage: { input_tokens: 300, cache_read_input_tokens: 23_000, output_tokens: 180 }, content: [{ type: "text", text: "Done:\n\n1. `reminders_due` is an index on `due_at`\n2. the test starts from **every** earlier version\n\n| version | time |\n|---|--:|\n| 1 | 0.4 s |\n| 2 | 0.5 s |" }] } },
  );
}

/** An agent that really runs, with a change of its configuration that waits. */
async function propose(hive: Hive): Promise<void> {
  await hive.cli("spawn", "cleo");
  await eventually("it is idle", async () => {
    const { agents } = await hive.call("list");
    return agents.some((agent: { name: string; state: string; unread: number }) => agent.name === "cleo" && agent.state === "idle" && agent.unread === 0);
  });
  const config = '# cleo keeps the dependencies up to date\nmodel = "sonnet"\ntool_groups = ["messaging", "meta", "inbox", "web_tools"]\n\n[limits]\nmemory_mib = 4096\n';
  await hive.propose("cleo", { "agent.toml": config }, "I have to read the changelog of a dependency.");
  const peer = hive.peer("cleo");
  await work(peer);
  peer.close();
}

const [hive, browser] = await Promise.all([Hive.start({ scenario: "pages.toml" }), launch()]);
try {
  await tell(hive);
  await propose(hive).catch((error) => console.error("no approval:", String(error)));
  const settled = async (page: Page): Promise<void> => {
    await eventually("it is loaded", async () => (await page.getByText("Loading").count()) === 0);
    await eventually("everything is shown", async () => (await page.locator(".markdown > .plain, .terminal > .plain").count()) === 0);
  };
  const shoot = async (page: Page, name: string): Promise<void> => {
    await settled(page);
    await page.screenshot({ path: join(out, `${name}.png`) });
  };
  const { page, complaints } = await open(browser, await hive.link(), { viewport: { width: 1280, height: 860 }, colorScheme: theme as "dark" });
  await live(page);
  await page.locator("li.card").first().waitFor();
  await shoot(page, "dashboard");
  for (const place of ["messages", "decisions", "permissions", "schedules", "stats", "log", "settings"]) {
    await page.goto(`${hive.address}/#/${place}`);
    await shoot(page, place);
  }
  await page.goto(`${hive.address}/#/agent/cleo`);
  await page.locator(".row.end").waitFor();
  await page.locator(".row.tool details.result summary, .row.tool .detail details:not([open]) summary").first().click().catch(() => undefined);
  await shoot(page, "agent");
  const phone = await open(browser, await hive.link(), { viewport: { width: 360, height: 740 }, colorScheme: theme as "dark", isMobile: true, hasTouch: true });
  await live(phone.page);
  await shoot(phone.page, "dashboard-phone");
  await phone.page.goto(`${hive.address}/#/agent/cleo`);
  await phone.page.locator(".row.end").waitFor();
  await shoot(phone.page, "agent-phone");
  const door = await open(browser, hive.address, { colorScheme: theme as "dark" });
  await shoot(door.page, "sign-in");
  for (const line of complaints) console.error("page:", line);
} finally {
  await browser.close();
  await hive.stop();
}
