// What the host's API says. Names are those of docs/http.md.

export type AgentState =
  | "external" | "starting" | "idle" | "thinking" | "compacting"
  | "rate_limited" | "needs_login" | "paused" | "stopped" | "failed";

export interface DashboardLink {
  label: string;
  url: string;
  icon?: string;
}

/** An agent as its row in the fleet shows it. */
export interface AgentRow {
  name: string;
  state: AgentState;
  status: string;
  runtime: string;
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
  stale?: boolean;
  turn_state: "idle" | "thinking" | "compacting";
  turn_state_since: string | null;
  current_tool: string | null;
  context_tokens: number;
  context_window_tokens: number;
  held_until: string | null;
  turns_today: number;
  cost_today_micro_usd: number;
  links: DashboardLink[];
}

export interface HiveInfo {
  version: string;
  started_at: string;
  hive: string | null;
  swarm: string | null;
  root: string;
  dashboard: string;
  agents: number;
  undelivered: number;
  dead: number;
}

export interface HiveState {
  position: string;
  hive: HiveInfo;
  rehearsed: boolean;
  root_agent: string;
  agents: AgentRow[];
}

export interface AgentSnapshot {
  position: string;
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
  runtime: string;
  note: string;
  port: number;
  /** Pages that the agent serves itself, in a sandbox. */
  own: string[];
  links: DashboardLink[];
}

/** One event of the host's log. */
export interface EventRow {
  seq: number;
  at: string;
  about: string;
  kind: string;
  data: Record<string, unknown>;
}

export interface Past {
  position: string;
  events: EventRow[];
  before: string | null;
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
  answered_at: string | null;
}

export interface Approval {
  approval_id: number;
  kind: "spawn" | "apply";
  agent: string;
  requested_by: string;
  commit: string | null;
  hash: string;
  diff: string;
  reason: string;
  state: "pending" | "approved" | "denied" | "failed" | "cancelled" | "expired";
  requested_at: string;
  expires_at: string | null;
  decided_at: string | null;
  note: string;
}

export interface PermissionRow {
  name: string;
  groups: string[];
  capabilities: string[];
  recipients: string[];
  is_root?: boolean;
  changed_at: string | null;
}

export interface ScheduleRow {
  schedule_id: number;
  agent: string;
  prompt: string;
  cron: string | null;
  time_zone: string | null;
  next_at: string;
  created_at: string;
  fired_at?: string;
}

export interface ReminderRow {
  reminder_id: number;
  agent: string;
  message: string;
  due_at: string;
}

export interface PauseRow {
  agent?: string;
  cause: "operator" | "budget";
  since: string;
  reason: string;
}

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

/** One engine run with its counts. */
export interface TurnRow {
  turn_row_id: number;
  kind: string;
  started_at: string;
  duration_ms: number;
  model: string;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cache_creation_tokens: number;
  cost_micro_usd: number;
  context_tokens: number;
  window: number;
  outcome: string;
  note?: string;
  tools: { name: string; count: number }[];
}
