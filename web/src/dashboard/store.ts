// What the dashboard knows, kept true by the one event stream: each kind of event says which lists
// to ask for again, and bursts are asked for once.

import { computed, signal } from "@preact/signals";
import { ApiError, Unreachable } from "../api/client.ts";
import { Feed } from "../api/feed.ts";
import type { AgentRow, Approval, EventRow, HistoryRow, HiveInfo, Mail, Question } from "../api/types.ts";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";

export const feed = new Feed("/api/events", true);

export const info = signal<HiveInfo | undefined>(undefined);
export const agents = signal<AgentRow[] | undefined>(undefined);
export const rehearsed = signal(false);
/** The agent that keeps the hive going: it is neither stopped nor destroyed from here. */
export const rootAgent = signal("");
export const inbox = signal<Mail[]>([]);
export const questions = signal<Question[]>([]);
export const approvals = signal<Approval[]>([]);
export const dead = signal<HistoryRow[]>([]);
/** The newest events, newest last. */
export const recent = signal<EventRow[]>([]);
/** Moves whenever a message was stored or settled. */
export const mailMoved = signal(0);

export const troubled = computed(() => (agents.value ?? []).filter((agent) => agent.state === "failed" || agent.state === "needs_login"));
/** Questions that the operator is to answer. */
export const mine = computed(() => questions.value.filter((question) => question.target === "operator" && question.answer === null));
/** How many things wait for the operator. */
export const waiting = computed(
  () => approvals.value.length + mine.value.length + dead.value.length + troubled.value.length + inbox.value.length,
);

const RECENT = 2_000;
const GATHER = 150;
/** A large fleet is not asked for more often than this. */
const RESTED = 1_500;
const LARGE = 50;

type List = "state" | "inbox" | "questions" | "approvals" | "dead";
const ALL: List[] = ["state", "inbox", "questions", "approvals", "dead"];

const LOADERS: Record<List, () => Promise<void>> = {
  state: async () => {
    const found = await hive.state();
    info.value = found.hive;
    agents.value = found.agents;
    rehearsed.value = found.rehearsed;
    rootAgent.value = found.root_agent;
    feed.start(found.position);
  },
  inbox: async () => void (inbox.value = (await hive.inbox()).messages),
  questions: async () => void (questions.value = (await hive.questions({ target: "operator" })).questions),
  approvals: async () => {
    const found = await hive.approvals().catch(absent({ approvals: [] }));
    approvals.value = found.approvals.filter((one) => one.state === "pending");
  },
  dead: async () => void (dead.value = (await hive.dead()).messages),
};

/** An older host does not know every command: then there is nothing of that kind. */
export function absent<T>(nothing: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof ApiError && error.code === "unknown_command") return nothing;
    throw error;
  };
}

const wanted = new Set<List>();
let timer: ReturnType<typeof setTimeout> | undefined;
let stateAt = 0;

/** Asks for these lists again, soon and once. */
export function refresh(...lists: List[]): void {
  for (const list of lists) wanted.add(list);
  timer ??= setTimeout(gather, GATHER);
}

function gather(): void {
  timer = undefined;
  const rest = stateAt + ((agents.value?.length ?? 0) > LARGE ? RESTED : 0) - Date.now();
  const now = [...wanted].filter((list) => list !== "state" || rest <= 0);
  for (const list of now) wanted.delete(list);
  if (wanted.size > 0) timer = setTimeout(gather, Math.max(rest, GATHER));
  if (now.includes("state")) stateAt = Date.now();
  for (const list of now) LOADERS[list]().catch(failed);
}

let broken = false;
function failed(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return; // The session has ended, and says so.
  // A host that is away is said once by the stream's own sign, not with every list.
  if (error instanceof Unreachable) {
    if (!broken && feed !== undefined) setTimeout(() => refresh(...ALL), 2_000);
    broken = true;
    return;
  }
  complain(error);
}

function touched(event: EventRow): List[] {
  if (event.kind === "stream" || event.kind === "note" || event.kind === "login") return [];
  if (event.kind.startsWith("question")) return ["questions", "state"];
  if (event.kind.startsWith("approval")) return ["approvals", "state"];
  // A turn that ends may leave a dead letter behind.
  if (event.kind === "turn_ended" || event.kind.startsWith("dead_letter")) return ["dead", "state"];
  if (event.kind.startsWith("message") && event.about === "operator") return ["inbox", "state"];
  return ["state"];
}

/** Follows the hive until the returned function is called. */
export function watch(): () => void {
  const silent = feed.listen({
    live: () => {
      broken = false;
      refresh(...ALL);
    },
    gap: () => refresh(...ALL),
    event: (event) => {
      if (event.kind !== "stream") recent.value = [...recent.value.slice(1 - RECENT), event];
      if (event.kind.startsWith("message")) mailMoved.value++;
      refresh(...touched(event));
    },
  });
  refresh(...ALL);
  return () => {
    silent();
    feed.stop();
  };
}
