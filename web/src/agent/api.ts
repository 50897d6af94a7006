// An agent's API: under its own port, or on the dashboard under its name.

import { get, newKey, post } from "../api/client.ts";
import type { AgentSnapshot, DayTotal, Look, Past, TaskOutput, TaskRow, TurnRow } from "../api/types.ts";

export type { Look, TaskRow };

export class AgentApi {
  /** `base` is `/api` on the agent's own port, `/api/agents/NAME` on the dashboard. */
  constructor(readonly base: string) {}

  state(): Promise<AgentSnapshot> {
    return get(`${this.base}/state`);
  }
  past(before?: string, limit = 300): Promise<Past> {
    const asked = new URLSearchParams({ limit: String(limit), ...(before === undefined ? {} : { before }) });
    return get(`${this.base}/past?${asked.toString()}`);
  }
  stats(days = 30): Promise<{ totals: DayTotal[] }> {
    return get(`${this.base}/stats?days=${days}`);
  }
  turns(before?: number): Promise<{ turns: TurnRow[]; next: number | null }> {
    return get(`${this.base}/turns?limit=50${before === undefined ? "" : `&before=${before}`}`);
  }
  tasks(): Promise<{ tasks: TaskRow[] }> {
    return get(`${this.base}/tasks`);
  }
  tail(id: number, stream: "out" | "err", from?: number): Promise<TaskOutput> {
    return get(`${this.base}/tasks/${id}?stream=${stream}${from === undefined ? "" : `&from=${from}`}`);
  }
  files(path: string): Promise<Look> {
    return get(`${this.base}/files?${new URLSearchParams({ path }).toString()}`);
  }
  send(body: string): Promise<unknown> {
    return post(`${this.base}/send`, { body, key: newKey() });
  }
  interrupt(): Promise<unknown> {
    return post(`${this.base}/interrupt`);
  }
  compact(): Promise<unknown> {
    return post(`${this.base}/compact`);
  }
  newSession(): Promise<unknown> {
    return post(`${this.base}/new-session`);
  }
  model(name: string): Promise<unknown> {
    return post(`${this.base}/model`, { name });
  }
  lift(): Promise<unknown> {
    return post(`${this.base}/lift`);
  }
  loginStart(): Promise<unknown> {
    return post(`${this.base}/engine-login/start`);
  }
  loginInput(text: string): Promise<unknown> {
    return post(`${this.base}/engine-login/input`, { text });
  }
  loginCancel(): Promise<unknown> {
    return post(`${this.base}/engine-login/cancel`);
  }
}
