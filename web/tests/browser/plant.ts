// Puts hostile text wherever an agent can: one agent per text, so that none hides another.

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HOSTILE } from "./corpus.ts";
import type { Hive } from "./hive.ts";
import { called, type Peer, returned, said } from "./peer.ts";

/** What an agent is told apart by: its text is `HOSTILE[n]`. */
export const named = (number: number): string => `e${number}`;

/** What a field of one line takes. */
const line = (text: string): string => text.replace(/\p{Cc}/gu, " ").slice(0, 100);

/** Events of a shape that no engine has. */
const ODD: unknown[] = [
  null, 7, "text", [], { type: 7 }, { type: "assistant" }, { type: "assistant", message: null }, { type: "assistant", message: { content: "words" } },
  { type: "assistant", message: { content: [null, 7, { type: "tool_use" }, { type: "tool_use", id: 7, name: {}, input: null }, { type: "text", text: {} }] } },
  { type: "user", message: { content: [{ type: "tool_result" }, { type: "tool_result", tool_use_id: {}, content: 7 }] } },
  { type: "system", subtype: {} }, { type: "rate_limit_event", rate_limit_info: 7 }, { type: "result", usage: "many" },
];

/** One agent that says nothing but `text`, in every way there is. */
export async function plant(hive: Hive, number: number): Promise<Peer> {
  const text = HOSTILE[number] as string;
  const name = named(number);
  await hive.call("spawn", { name, runtime: "none" });
  await hive.call("set_permissions", { name, grant: ["scheduling", "approvals"] });
  const peer = hive.peer(name);
  // Its harness: connected, in trouble, and full of itself.
  hive.peer(name).wait();
  const since = new Date().toISOString();
  await peer.ask("post_state", { turn_state: "thinking", since, status: number % 2 === 0 ? "online" : "needs_login_idle", model: line(text), current_tool: line(text), engine: line(text), engine_version: line(text) });
  await peer.ask("post_turn_counts", { turn: "t", kind: "mail", started_at: since, duration_ms: 1, outcome: "failed", note: text, model: line(text), tools: [{ name: line(text), count: 1 }] });
  await peer.ask("set_status", { text: line(text) });
  await peer.ask("remind", { message: text, delay_seconds: 90_000 });
  await peer.ask("schedule", { prompt: text, cron: "0 9 * * *" });
  const { question_id } = await peer.ask("ask", { question: text, options: [text, `${text} 2`], multi: true });
  await hive.call("answer", { question_id, answer: text });
  await peer.ask("ask", { question: text, options: [text, `${text} 2`], multi: number % 2 === 0 });
  // A dead letter, one that waits, and mail to the operator, in a thread.
  await peer.ask("send", { to: name, body: text });
  await peer.ask("recv", { turn: "t", max: 1 });
  await peer.ask("requeue_inflight", { turn: "t", reason: "failed" });
  const { message_id } = await peer.ask("send", { to: name, body: text });
  await peer.ask("send", { to: "operator", body: text, in_reply_to: message_id });
  await transcript(peer, text);
  files(hive, name, text, number);
  return peer;
}

/** A turn in which everything is the text: who wrote, what was said, every tool and every result. */
async function transcript(peer: Peer, text: string): Promise<void> {
  await peer.turn(
    text, text, said(text), { type: "assistant", message: { content: [{ type: "thinking", thinking: text }] } },
    called("a", text, { [text]: text }), returned("a", text),
    called("b", "Write", { file_path: text, content: text }), returned("b", text, true),
    called("c", "Edit", { file_path: text, old_string: "x", new_string: text }), returned("c", [{ type: text, text }]),
    called("r", "Read", { file_path: text }), returned("r", `1\t${text}`),
    called("g", "Grep", { pattern: text, path: text }), returned("g", text.repeat(40)),
    called("d", "mcp__bash__run", { cmd: text }), returned("d", JSON.stringify({ stdout: text, stderr: text, summary: text, exit_code: 1 })),
    called("e", "mcp__hyperhive__send", { to: text, body: `${text}\n${text}` }), returned("e", text),
    called("f", "TodoWrite", { todos: [{ status: text, content: text }] }),
    { type: "rate_limit_event", rate_limit_info: { status: text } }, { type: "system", subtype: "api_retry", error: text },
    { type: "system", subtype: "permission_denied", tool_name: text }, { type: "system", subtype: text },
    ...ODD,
  );
  await peer.post(
    { kind: "note", data: { text } }, { kind: "login", data: { text: `${text} https://[ ${text}` } },
    { kind: "turn_end", data: { ok: false, outcome: text, note: text } },
    { kind: "turn_end", data: 7 }, { kind: "turn_start", data: { from: {}, body: 7 } }, { kind: "note", data: null }, { kind: "login", data: {} },
  );
}

/** What lies in the agent's own directories: notes and their names, tasks and what they wrote. */
function files(hive: Hive, name: string, text: string, number: number): void {
  const own = join(hive.root, "state/agents", name);
  mkdirSync(join(own, "state"), { recursive: true });
  mkdirSync(join(own, "harness/bash-tasks"), { recursive: true });
  writeFileSync(join(own, "state/note.md"), text);
  writeFileSync(join(own, "state/note.txt"), text);
  writeFileSync(join(own, "state", fileName(number)), text);
  symlinkSync("/etc", join(own, "state/etc"));
  symlinkSync("../../../operator-token", join(own, "state/token"));
  const task = { id: 1, cmd: text, state: text, created_at: null, ended_at: null, duration_ms: null, exit_code: 1, signal: null, note: text };
  writeFileSync(join(own, "harness/bash-tasks/1.json"), JSON.stringify(task));
  writeFileSync(join(own, "harness/bash-tasks/1.out"), text);
  writeFileSync(join(own, "harness/bash-tasks/1.err"), text);
  links(hive, name, text);
}

/** A name of a file as near to the text as a directory takes it. */
export const fileName = (number: number): string => `${(HOSTILE[number] as string).replace(/[/\u0000]/g, "∕").slice(0, 60)} ${number}`;

/** Links of the agent's card: where they lead, what they say, and the sign before them. */
export function links(hive: Hive, name: string, text: string): void {
  const rows = [
    { label: text, url: text, icon: text },
    { label: text, url: `https://example.test/${text}`, icon: text },
    { label: text, url: "https://example.test/", icon: text },
  ];
  writeFileSync(join(hive.root, "state/agents", name, "state/hyperhive-dashboard-links.json"), JSON.stringify(rows));
}

/** A configuration with the texts in every line of it, and a file for each. */
export function configuration(): Record<string, string> {
  const shown = HOSTILE.map(line);
  return {
    "agent.toml": `model = "haiku"\n${shown.map((text) => `# ${text}\n`).join("")}[env]\nSAID = ${JSON.stringify(shown.join(" "))}\n`,
    ...Object.fromEntries(shown.map((text, number) => [`said-${number}.html`, `${text}\n`])),
    "__proto__": "x\n", constructor: "x\n",
  };
}
