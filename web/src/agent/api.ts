// An agent's API: under its own port, or on the dashboard under its name.

import { get, newKey, post } from "../api/client.ts";
import type { AgentSnapshot } from "../api/types.ts";

export interface DayTotal {
  agent: string;
  day: string;
  turns: number;
  failed: number;
  deferred: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_creation_tokens: number;
  cost_micro_usd: number;
  duration_ms: number;
}

export class AgentApi {
  /** `base` is `/api` on the agent's own port, `/api/agents/NAME` on the dashboard. */
  constructor(readonly base: string) {}

  state(): Promise<AgentSnapshot> {
    return get(`${this.base}/state`);
  }
  stats(): Promise<{ totals: DayTotal[] }> {
    return get(`${this.base}/stats`);
  }
  events(): string {
    return `${this.base}/events`;
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
