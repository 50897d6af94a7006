// Fills a hive: many agents, many messages, one long transcript.

import type { Hive } from "./hive.ts";
import type { Peer } from "./peer.ts";

export interface Size {
  agents: number;
  messages: number;
  events: number;
}

/** How many agents write; the others only have mail. */
const WRITERS = 4;

/** Agents are `a0`, `a1` …; the transcript is `a0`'s. */
export async function seed(hive: Hive, size: Size): Promise<void> {
  const names = Array.from({ length: size.agents }, (_, number) => `a${number}`);
  for (const name of names) await hive.call("spawn", { name, runtime: "none" });
  const peers: Peer[] = names.slice(0, WRITERS).map((name) => hive.peer(name));
  const each = Math.ceil(size.messages / peers.length);
  await Promise.all(peers.map((peer, number) => send(peer, number, each, names.slice(WRITERS))));
  const writer = peers[0];
  if (writer !== undefined) {
    for (let at = 0; at < size.events; at += 5_000) {
      const lines = Array.from({ length: Math.min(5_000, size.events - at) }, (_, line) => ({
        kind: "stream",
        data: { value: { type: "assistant", message: { content: [{ type: "text", text: `line ${at + line} of a long day` }] } } },
      }));
      await writer.post(...lines);
    }
  }
  peers.forEach((peer) => peer.close());
}

/** Sends to agents whose mail nobody reads, in batches that are answered together. */
async function send(peer: Peer, number: number, count: number, names: string[]): Promise<void> {
  for (let at = 0; at < count; at += 100) {
    const batch = Array.from({ length: Math.min(100, count - at) }, (_, line) => {
      const to = names[(number * 31 + at + line) % names.length];
      return peer.ask("send", { to, body: `message ${number}-${at + line}` });
    });
    await Promise.all(batch);
  }
}
