// An agent's API: under its own port, or on the dashboard under its name.

import { get, newKey, post } from "../api/client.ts";
import type { AgentSnapshot, DayTotal, Look, Past, TaskOutput, TaskRow, TurnRow } from "../api/types.ts";

export type { Look, TaskRow };

/** What came of a request to a harness: `carried_out` is missing while it has not answered. */
interface Outcome {
  carried_out?: boolean;
  note?: string;
}

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
  interrupt(): Promise<void> {
    return this.#control("interrupt");
  }
  compact(): Promise<void> {
    return this.#control("compact");
  }
  newSession(): Promise<void> {
    return this.#control("new-session");
  }
  model(name: string): Promise<void> {
    return this.#control("model", { name });
  }
  lift(): Promise<unknown> {
    return post(`${this.base}/lift`);
  }
  loginStart(): Promise<void> {
    return this.#control("engine-login/start");
  }
  loginInput(text: string): Promise<void> {
    return this.#control("engine-login/input", { text });
  }
  loginCancel(): Promise<void> {
    return this.#control("engine-login/cancel");
  }

  /** Has the harness do something; one that says no is an error, in its own words. */
  async #control(path: string, body: Record<string, unknown> = {}): Promise<void> {
    const outcome = await post<Outcome>(`${this.base}/${path}`, body);
    if (outcome.carried_out === false) throw new Error(`The agent did not do it: ${outcome.note ?? "it does not say why"}`);
  }
}
