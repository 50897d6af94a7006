// What the host's API says, under the names that the pages use. The shapes come from the host's own
// code (`generated.ts`); a pause stands in an answer of `/api/call`, which its document leaves open.

import type * as host from "./generated.ts";

export type {
  AgentPage as AgentSnapshot, AgentState, ApprovalRow as Approval, DashboardLink, DayTotal, DiffLine, FileChange,
  HistoryRow, HiveInfo, Look, Message as Mail, MessageState, Node, NotifierState, Part, PermissionRow, QuestionRow as Question, Reminders,
  ScheduleRow, TaskOutput, TaskRow, TurnRow,
} from "./generated.ts";

/** An agent as its row in the fleet shows it. */
export type { FleetRow as AgentRow, HiveState } from "./generated.ts";

/** One event of the host's log. */
export type EventRow = Omit<host.EventRow, "data"> & { data: Record<string, unknown> };

export type Past = Omit<host.Past, "events"> & { events: EventRow[] };

/** One pause in force; without an agent, of the whole hive. */
export interface PauseRow {
  agent?: string;
  cause: "operator" | "budget";
  since: string;
  reason: string;
}
