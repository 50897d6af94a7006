// What the operator can ask of the hive: the same commands as on the admin socket.

import { newKey, post } from "../api/client.ts";
import type { AgentRow } from "../api/types.ts";
import type { DayTotal } from "../agent/api.ts";

export interface HiveInfo {
  version: string;
  started_at: string;
  hive: string | null;
  swarm: string | null;
  agents: number;
  undelivered: number;
  dead: number;
}

export interface Mail {
  id: number;
  from: string;
  to: string;
  body: string;
  in_reply_to: number | null;
  sent_at: string;
}

export interface HistoryRow {
  message_id: number;
  from: string;
  to: string;
  state: string;
  deliveries: number;
  sent_at: string;
  acked_at: string | null;
  body: string;
  in_reply_to: number | null;
}

export interface Question {
  question_id: number;
  asker: string;
  target: string;
  question: string;
  options: string[];
  multi: boolean;
  asked_at: string;
  expires_at: string | null;
  answer: string | null;
}

function command<T>(cmd: string, fields: Record<string, unknown> = {}): Promise<T> {
  return post<T>("/api/call", { cmd, ...fields });
}

export const hive = {
  info: () => command<HiveInfo>("info"),
  list: () => command<{ agents: AgentRow[]; rehearsed?: boolean }>("list"),
  inbox: () => command<{ messages: Mail[] }>("inbox"),
  ack: (ids: number[]) => command("ack_inbox", { ids }),
  questions: () => command<{ questions: Question[] }>("questions"),
  answer: (question_id: number, answer: string) => command("answer", { question_id, answer }),
  dead: () => command<{ messages: HistoryRow[] }>("dead"),
  redeliver: (message_id: number) => command("redeliver", { message_id }),
  discard: (message_id: number) => command("discard", { message_id }),
  history: (fields: { with?: string; thread?: number; before?: number; limit?: number }) =>
    command<{ messages: HistoryRow[]; next: number | null }>("history", fields),
  send: (to: string, body: string, in_reply_to?: number) =>
    command("send", { to, body, key: newKey(), ...(in_reply_to === undefined ? {} : { in_reply_to }) }),
  spawn: (name: string, model: string) => command("spawn", { name, runtime: "auto", ...(model === "" ? {} : { model }) }),
  start: (name: string) => command("start", { name }),
  stop: (name: string) => command("kill", { name }),
  restart: (name: string) => command("restart", { name }),
  rebuild: (name: string) => command("rebuild", { name }),
  destroy: (name: string) => command("destroy", { name }),
  stopAll: () => command("stop_all"),
  totals: (days: number) => command<{ totals: DayTotal[] }>("turn_totals", { days }),
};
