// Made from docs/openapi.json by `npm run types`; not to be edited.

/** The name of an agent: `[a-z][a-z0-9-]*`, at most nine characters, not reserved.  Cheap to clone: the broker keys its tables with it. */
export type AgentName = string;

/** One agent. */
export interface AgentPage {
  /** Whether a harness of it is connected. */
  connected: boolean;
  /** How full its context is. */
  context_tokens: number;
  /** How large its context is. */
  context_window_tokens: number;
  /** The credential it is on. */
  credential: string;
  /** The tool that runs. */
  current_tool: string | null;
  /** Its engine. */
  engine: string;
  /** The engine's version. */
  engine_version: string;
  /** Until when it must not begin a turn. */
  held_until: Timestamp | null;
  /** Messages that its open turn holds. */
  inflight: number;
  links: DashboardLink[];
  /** The model of its next turn. */
  model: string;
  /** Its name. */
  name: AgentName;
  note: string;
  own: string[];
  parent: AgentName | null;
  /** Requests that its harness has not answered. */
  pending_controls: number;
  /** The port of its page, and what it serves there under `/own/`. */
  port: number;
  /** Events after this are news to whoever holds this answer. */
  position: string;
  /** Messages that wait or are held. */
  queue: number;
  /** Whether its model is the rehearsal one. */
  rehearsed: boolean;
  /** When the rate limit of its credential ends, as far as is known. */
  resets_at: Timestamp | null;
  runtime: Runtime;
  schema: number;
  /** Where it stands, in one word. */
  state: AgentState;
  /** How its harness said last that it is doing; none when it said nothing yet. */
  status: HarnessStatus | null;
  /** When it said so. */
  status_set_at: Timestamp | null;
  /** What it says of itself. */
  status_text: string;
  /** What its harness said last that it does. */
  turn_state: TurnState;
  /** Since when; none when no harness said anything yet. */
  turn_state_since: Timestamp | null;
  /** Messages that wait in its inbox. */
  unread: number;
}

/** Where an agent stands. */
export type AgentState = "external" | "starting" | "idle" | "thinking" | "compacting" | "rate_limited" | "needs_login" | "paused" | "stopped" | "failed";

/** Something that waits for the operator's decision. */
export type ApprovalId = number;

/** What is asked for. */
export type ApprovalKind = "spawn" | "apply";

/** An approval as the operator sees it. */
export interface ApprovalRow {
  /** The agent it is about. */
  agent: AgentName;
  /** Its id. */
  approval_id: ApprovalId;
  /** When what was approved had been carried out. */
  carried_out_at: Timestamp | null;
  /** The commit that it is pinned to. */
  commit: string | null;
  /** When it was decided. */
  decided_at: Timestamp | null;
  /** What would change. */
  diff: string;
  /** When it falls out. */
  expires_at: Timestamp | null;
  /** The hash of what would be applied: a decision that names it holds for that content only. */
  hash: string;
  /** What is asked for. */
  kind: ApprovalKind;
  /** What the decider said, or why it failed. */
  note: string;
  /** Why, in the requester's words. */
  reason: string;
  /** When it was requested. */
  requested_at: Timestamp;
  /** Who asks. */
  requested_by: SenderLabel;
  /** Where it stands. */
  state: ApprovalState;
}

/** Where an approval stands. */
export type ApprovalState = "pending" | "approved" | "denied" | "failed" | "cancelled" | "expired";

/** How a budget stands today. */
export interface BudgetState {
  /** Whose it is; none for the whole hive's. */
  agent?: AgentName | null;
  /** The most that may be spent, raises included. */
  cost_cap_micro_usd?: number | null;
  /** Millionths of a US dollar spent. */
  cost_micro_usd: number;
  /** Tokens spent, of every kind together. */
  tokens: number;
  /** The most that may be spent, raises included. */
  tokens_cap?: number | null;
}

/** Something that an agent may do beyond its groups (C14). */
export type Capability = string;

/** A link on an agent's card and page. */
export interface DashboardLink {
  /** A sign before it; may be empty. */
  icon: string;
  /** What it says. */
  label: string;
  /** Where it leads: an http(s) address. */
  url: string;
}

/** What one agent did on one day. */
export interface DayTotal {
  /** Who. */
  agent: AgentName;
  /** Tokens written to the cache. */
  cache_creation_tokens: number;
  /** Tokens read from the cache. */
  cache_read_tokens: number;
  /** How full the context was at most. */
  context_tokens: number;
  /** What they cost, in millionths of a US dollar. */
  cost_micro_usd: number;
  /** The day, in UTC, such as `2026-01-02`. */
  day: string;
  /** Those that were put off: limits, outages, logins, interrupts. */
  deferred: number;
  /** How long they took. */
  duration_ms: number;
  /** How long the engine ran. */
  engine_ms: number;
  /** Those that failed. */
  failed: number;
  /** Tokens read that were in no cache. */
  input_tokens: number;
  /** Tokens written. */
  output_tokens: number;
  /** Engine runs. */
  turns: number;
}

/** What a new agent gets on this machine, and how the hive does for a model. */
export interface Defaults {
  /** The command that `--engine auto` means here; empty when there is none. */
  engine: string;
  /** Why, or what is missing. */
  engine_note: string;
  /** Whether a rehearsed model answers instead of a real one. */
  rehearsed: boolean;
  /** What `--runtime auto` means here; `auto` until that was tried for the first time. */
  runtime: Runtime;
  /** Why. */
  runtime_note: string;
}

/** One line of a change. */
export interface DiffLine {
  /** What it says. */
  inside: Node[];
  /** … and after the change. */
  new?: number | null;
  /** Its number before … */
  old?: number | null;
  /** `+`, `-`, a space, or `@` before a new place in the file. */
  sign: string;
}

export interface Error {
  error: {
    code: string;
    hint?: string;
    message: string;
  };
  ok: false;
}

/** One event. */
export interface EventRow {
  /** The agent (or `operator`) it is about. */
  about: string;
  /** When it happened. */
  at: Timestamp;
  /** The particulars. */
  data: Record<string, unknown>;
  /** What happened, such as `message_stored`. */
  kind: string;
  /** Its number. */
  seq: number;
}

/** A change of one file. */
export interface FileChange {
  /** How many lines were added … */
  added: number;
  /** Whether more was changed than is shown. */
  is_cut: boolean;
  /** Its lines, hunk after hunk. */
  lines: DiffLine[];
  /** Which file, as far as it is known. */
  path: string;
  /** … and removed. */
  removed: number;
}

export interface FileRow {
  is_dir: boolean;
  modified_at: Timestamp;
  name: string;
  size: number;
}

/** One agent in the fleet. */
export interface FleetRow {
  /** Its name in the world: `name@domain` when the hive has a domain. */
  address: string;
  context_tokens: number;
  context_window_tokens: number;
  cost_today_micro_usd: number;
  /** When it was first registered. */
  created_at: Timestamp;
  current_tool: string | null;
  /** Which engine it runs; empty for one that runs elsewhere. */
  engine: string;
  held_until: Timestamp | null;
  /** Messages that its open turn holds. */
  inflight: number;
  /** Links on its card and its page, as it says. */
  links?: DashboardLink[];
  /** Which model it uses; empty for one that runs elsewhere. */
  model: string;
  /** Its name. */
  name: AgentName;
  /** What it reaches of the network; none for one that runs elsewhere. */
  network?: Network | null;
  /** What the operator should know: why it failed, or why it is where it is. */
  note?: string;
  /** Its parent in the tree. */
  parent: AgentName | null;
  /** The process that runs it, when one does. */
  pid?: number | null;
  /** The port of its page. */
  port: number;
  /** When it last did. */
  restarted_at?: Timestamp | null;
  /** How often the host started it again by itself since somebody last asked for a start. */
  restarts?: number;
  /** Where it runs. */
  runtime: Runtime;
  /** Where its socket lies. */
  socket: string;
  /** Whether it was made with another revision of the hive: a rebuild brings it up to date. */
  stale?: boolean;
  /** Where it stands. */
  state: AgentState;
  /** What it says of itself. */
  status: string;
  turn_state: TurnState;
  turn_state_since: Timestamp | null;
  turns_today: number;
  /** Messages that wait in its inbox. */
  unread: number;
}

/** A group of tools that the operator gives to an agent or not (M1). */
export type Group = string;

/** How a harness is doing. */
export type HarnessStatus = "online" | "rate_limited" | "needs_login_idle" | "unavailable" | "stopping";

/** A message with what became of it. */
export interface HistoryRow {
  /** When it was acked. */
  acked_at: Timestamp | null;
  /** What was said. */
  body: string;
  /** How often it was handed over. */
  deliveries: number;
  /** Who sent it. */
  from: SenderLabel;
  /** The message it answers. */
  in_reply_to: MessageId | null;
  /** The message. */
  message_id: MessageId;
  /** When it was stored. */
  sent_at: Timestamp;
  /** Where it stands. */
  state: MessageState;
  /** Whose inbox it went to. */
  to: string;
  /** The turn that holds or ended it. */
  turn: TurnId | null;
}

/** What daemon this is and how it does. */
export interface HiveInfo {
  /** How many agents are registered. */
  agents: number;
  /** The address of the dashboard port. */
  dashboard: string;
  /** How many dead letters wait for the operator. */
  dead: number;
  /** What a new agent gets on this machine. */
  defaults: Defaults;
  /** The hive's name, when it has one. */
  hive: string | null;
  /** Why the whole hive is paused, when it is. */
  paused?: string | null;
  /** The daemon's process. */
  pid: number;
  /** The directory everything lies under. */
  root: string;
  /** What the hive has spent today, and may. */
  spent_today?: BudgetState | null;
  /** The version of the SQLite library inside. */
  sqlite: string;
  /** When it started. */
  started_at: Timestamp;
  /** The name of the swarm it belongs to. */
  swarm: string | null;
  /** How many messages wait or are held, the operator's among them. */
  undelivered: number;
  /** The build's version. */
  version: string;
}

/** The whole hive. */
export interface HiveState {
  agents: FleetRow[];
  hive: HiveInfo;
  position: string;
  /** Whether a rehearsed model answers instead of a real one. */
  rehearsed: boolean;
  /** The agent that keeps the hive going; empty for none. */
  root_agent: string;
  schema: number;
}

/** A directory, or the beginning of a file. */
export type Look = {
  entries: FileRow[];
  kind: "directory";
  path: string;
} | {
  is_binary: boolean;
  is_cut: boolean;
  kind: "file";
  path: string;
  size: number;
  text: string;
};

/** A message as its recipient sees it. */
export interface Message {
  /** What was said. */
  body: string;
  /** 1 the first time it is handed over, 2 the second … */
  delivery: number;
  /** Who sent it, as stamped by the host. */
  from: SenderLabel;
  /** Its id; redelivered, it keeps it. */
  id: MessageId;
  /** The message it answers. */
  in_reply_to: MessageId | null;
  /** When it was stored. */
  sent_at: Timestamp;
  /** Whose inbox it lay in. */
  to: string;
}

/** A message. Durable messages count up from 1; transient ones are negative and never on disk. */
export type MessageId = number;

/** Where a message stands. */
export type MessageState = "stored" | "leased" | "acked" | "dead" | "discarded";

/** What an agent reaches of the network. */
export type Network = "auto" | "gateway" | "none" | "host";

/** A piece of text, or a part with others inside. */
export type Node = string | Part;

/** How the notifier does, for the settings page. */
export interface NotifierState {
  content: boolean;
  host: string;
  is_on: boolean;
  kind: string;
  last_error: string | null;
  min_interval_secs: number;
  quiet_hours: string | null;
  sent: number;
}

/** A part with others inside. */
export interface Part {
  /** How it looks: words of ours, never of an agent's. */
  class?: string | null;
  /** Where a link leads; `http`, `https` or `mailto`. */
  href?: string | null;
  /** What is inside. */
  inside?: Node[];
  /** What it is. */
  tag: Tag;
}

export interface Past {
  /** Where the page before this one ends, when there is one. */
  before: string | null;
  /** Oldest first. */
  events: EventRow[];
  /** Events after this are news to whoever holds this answer. */
  position: string;
}

/** What one agent may do. */
export interface PermissionRow {
  /** Its capabilities. */
  capabilities: Capability[];
  /** When the operator changed it; none while it has the defaults. */
  changed_at: Timestamp | null;
  /** Its tool groups. */
  groups: Group[];
  /** Whether it is the root agent. */
  is_root?: boolean;
  /** Which agent. */
  name: AgentName;
  /** Whom it may write to besides its parent and the operator; empty for everybody. */
  recipients: Recipient[];
}

/** A question that somebody asked. */
export type QuestionId = number;

/** A question with its answer. */
export interface QuestionRow {
  /** The answer, `[expired]` or `[cancelled by …]`. */
  answer: string | null;
  /** When it was answered. */
  answered_at: Timestamp | null;
  /** When it was asked. */
  asked_at: Timestamp;
  /** Who asked. */
  asker: SenderLabel;
  /** When it expires. */
  expires_at: Timestamp | null;
  /** Whether several of them may be chosen. */
  multi: boolean;
  /** Suggested answers. */
  options: string[];
  /** The question. */
  question: string;
  /** Its id. */
  question_id: QuestionId;
  /** Who is to answer. */
  target: string;
}

/** Where a message goes once it is routed: an agent's inbox or the operator's. */
export type Recipient = string;

/** A reminder that an agent set itself. */
export type ReminderId = number;

export interface ReminderRow {
  agent: AgentName;
  due_at: Timestamp;
  message: string;
  reminder_id: ReminderId;
}

export interface Reminders {
  reminders: ReminderRow[];
}

export interface Rendered {
  pieces: Shown[];
}

/** Where an agent runs. */
export type Runtime = "auto" | "none" | "process" | "bwrap" | "nspawn" | "podman" | "nixos";

/** A scheduled prompt. */
export type ScheduleId = number;

/** A scheduled prompt. */
export interface ScheduleRow {
  /** Whose it is. */
  agent: AgentName;
  /** When it was made. */
  created_at: Timestamp;
  /** When it recurs; none for one that fires once. */
  cron: string | null;
  /** When it fired last. */
  fired_at?: Timestamp | null;
  /** When it fires next. */
  next_at: Timestamp;
  /** What it says. */
  prompt: string;
  /** Its id. */
  schedule_id: ScheduleId;
  /** The time zone of the recurrence. */
  time_zone: string | null;
}

/** Who a message says it is from, as stamped by the host.  A label is not a name: `bash-task-12` is nobody one could write to. */
export type SenderLabel = string;

export type Shown = {
  nodes: Node[];
} | {
  files: FileChange[];
};

/** Everything that something shown can be made of. */
export type Tag = "a" | "blockquote" | "br" | "code" | "del" | "em" | "h4" | "h5" | "hr" | "li" | "ol" | "p" | "pre" | "span" | "strong" | "table" | "td" | "th" | "thead" | "tr" | "ul";

export interface TaskOutput {
  /** Where the text begins. */
  from: number;
  /** Where the next piece begins. */
  next: number;
  text: string;
}

/** A task, as its daemon wrote it down. */
export interface TaskRow {
  cmd: string;
  created_at: Timestamp | null;
  duration_ms: number | null;
  ended_at: Timestamp | null;
  exit_code: number | null;
  id: number;
  note: string | null;
  signal: number | null;
  state: string;
}

export interface Tasks {
  tasks: TaskRow[];
}

/** A wall-clock time with millisecond precision.  It orders nothing: clocks jump. Order comes from message ids and event sequence numbers. */
export type Timestamp = string;

/** How often a turn used a tool. */
export interface ToolCount {
  /** How often. */
  count: number;
  /** The tool. */
  name: string;
}

/** A turn, named by the harness that runs it. */
export type TurnId = string;

/** What a turn was for. */
export type TurnKind = "mail" | "continue" | "checkpoint" | "compact";

/** One engine run with its counts. */
export interface TurnRow {
  /** Whose. */
  agent: AgentName;
  /** Tokens written to the cache. */
  cache_creation_tokens: number;
  /** Tokens read from the cache. */
  cache_read_tokens: number;
  /** How full the context was after the last inference. */
  context_tokens: number;
  /** What it cost, in millionths of a US dollar. */
  cost_micro_usd: number;
  /** How long it took, from its begin to its end. */
  duration_ms: number;
  /** How long the engine ran. */
  engine_ms: number;
  /** Tokens read that were in no cache. */
  input_tokens: number;
  /** What it was for. */
  kind: TurnKind;
  /** The messages it dealt with. */
  messages: MessageId[];
  /** Which model. */
  model: string;
  /** Why. */
  note?: string | null;
  /** How it ended: one of [`GOOD_OUTCOMES`], of [`DEFERRED_OUTCOMES`], or a word for a failure. */
  outcome: string;
  /** Tokens written. */
  output_tokens: number;
  /** The engine's session. */
  session_id?: string | null;
  /** When it began. */
  started_at: Timestamp;
  /** The tools it used. */
  tools: ToolCount[];
  /** The turn. */
  turn: TurnId;
  /** Its number. */
  turn_row_id: TurnRowId;
  /** How large the context is. */
  window: number;
}

/** A row of the turn statistics. */
export type TurnRowId = number;

/** What a harness does right now (T28). */
export type TurnState = "idle" | "thinking" | "compacting";
