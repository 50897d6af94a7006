// What the host's API says, under the names that the pages use. The shapes come from the host's own
// code (`generated.ts`); only what its document does not describe yet is written by hand.

import type * as host from "./generated.ts";

export type {
  AgentPage as AgentSnapshot, AgentState, ApprovalRow as Approval, DashboardLink, DayTotal, DiffLine, FileChange,
  HistoryRow, HiveInfo, Look, Message as Mail, Node, NotifierState, Part, QuestionRow as Question, Reminders, TaskOutput,
  TaskRow, TurnRow,
} from "./generated.ts";

/** An agent as its row in the fleet shows it. */
export type AgentRow = host.FleetRow & {
  /** Whether it was built by another version of the hive. */
  stale?: boolean;
  /** What it reaches: gateway, none or host. */
  network?: string | null;
};

export type HiveState = Omit<host.HiveState, "agents"> & { agents: AgentRow[] };

/** One event of the host's log. */
export type EventRow = Omit<host.EventRow, "data"> & { data: Record<string, unknown> };

export type Past = Omit<host.Past, "events"> & { events: EventRow[] };

/** What one agent may do. */
export interface PermissionRow {
  name: string;
  groups: string[];
  capabilities: string[];
  recipients: string[];
  is_root?: boolean;
  changed_at: string | null;
}

/** A scheduled prompt. */
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

/** One pause in force; without an agent, of the whole hive. */
export interface PauseRow {
  agent?: string;
  cause: "operator" | "budget";
  since: string;
  reason: string;
}
