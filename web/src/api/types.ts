// What the host's API says. Names are those of docs/http.md.

export type AgentState =
  | "external" | "starting" | "idle" | "thinking" | "compacting"
  | "rate_limited" | "needs_login" | "paused" | "stopped" | "failed";

export interface AgentRow {
  name: string;
  state: AgentState;
  status: string;
  runtime: string;
  network?: string;
  engine: string;
  model: string;
  parent: string | null;
  unread: number;
  inflight: number;
  port: number;
  address: string;
  created_at: string;
  note?: string;
  pid?: number;
}

export interface AgentSnapshot {
  name: string;
  state: AgentState;
  connected: boolean;
  turn_state: "idle" | "thinking" | "compacting";
  turn_state_since: string | null;
  status: string | null;
  model: string;
  engine: string;
  engine_version: string;
  context_tokens: number;
  context_window_tokens: number;
  current_tool: string | null;
  unread: number;
  inflight: number;
  status_text: string;
  status_set_at: string | null;
  credential: string;
  held_until: string | null;
  resets_at: string | null;
  pending_controls: number;
  rehearsed: boolean;
}

/** One event of the host's log. */
export interface EventRow {
  seq: number;
  at: string;
  about: string;
  kind: string;
  data: Record<string, unknown>;
}
