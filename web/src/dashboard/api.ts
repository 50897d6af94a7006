// What the operator can ask of the hive: the same commands as on the admin socket.

import { command, get, newKey, query } from "../api/client.ts";
import type {
  Approval, DayTotal, HistoryRow, HiveState, Mail, PauseRow, PermissionRow, Question, ScheduleRow,
} from "../api/types.ts";

export const hive = {
  state: () => get<HiveState>("/api/state"),
  inbox: () => query<{ messages: Mail[] }>("inbox"),
  ack: (ids: number[]) => command("ack_inbox", { ids }),
  questions: (of: { all?: boolean; target?: string }) => query<{ questions: Question[] }>("questions", of),
  answer: (question_id: number, answer: string) => command("answer", { question_id, answer }),
  dead: () => query<{ messages: HistoryRow[] }>("dead"),
  redeliver: (message_id: number) => command("redeliver", { message_id }),
  discard: (message_id: number) => command("discard", { message_id }),
  history: (fields: { with?: string; thread?: number; before?: number; limit?: number }) =>
    query<{ messages: HistoryRow[]; next: number | null }>("history", fields),
  send: (to: string, body: string, in_reply_to?: number) =>
    command("send", { to, body, key: newKey(), ...(in_reply_to === undefined ? {} : { in_reply_to }) }),
  spawn: (name: string, model: string, parent: string) =>
    command("spawn", { name, runtime: "auto", ...(model === "" ? {} : { model }), ...(parent === "" ? {} : { parent }) }),
  requestSpawn: (name: string, model: string, reason: string) =>
    command("request_spawn", { name, reason, ...(model === "" ? {} : { model }) }),
  start: (name: string) => command("start", { name }),
  stop: (name: string) => command("kill", { name }),
  restart: (name: string) => command("restart", { name }),
  rebuild: (name: string) => command("rebuild", { name }),
  destroy: (name: string) => command("destroy", { name }),
  stopAll: () => command("stop_all"),
  pause: (name?: string, now = false) => command<{ pauses: PauseRow[] }>("pause", { ...(name === undefined ? {} : { name }), now }),
  resume: (name?: string) => command<{ pauses: PauseRow[] }>("resume", name === undefined ? {} : { name }),
  totals: (days: number) => query<{ totals: DayTotal[] }>("turn_totals", { days }),
  approvals: (all = false) => query<{ approvals: Approval[] }>("pending", { all }),
  approve: (approval_id: number, hash: string, note: string) => command<{ state: string; note: string }>("approve", { approval_id, hash, note }),
  deny: (approval_id: number, note: string) => command("deny", { approval_id, note }),
  permissions: () => query<{ agents: PermissionRow[] }>("permissions"),
  setPermissions: (name: string, change: Record<string, unknown>) => command<PermissionRow>("set_permissions", { name, ...change }),
  schedules: () => query<{ schedules: ScheduleRow[] }>("schedules"),
  cancelSchedule: (schedule_id: number) => command("cancel_schedule", { schedule_id }),
};
