// What the dashboard knows, kept true by the one event stream: each kind of event says which lists
// to ask for again, and bursts are asked for once.

import { computed, signal } from "@preact/signals";
import { follow } from "../api/stream.ts";
import type { AgentRow, EventRow } from "../api/types.ts";
import { leave } from "../session.ts";
import { complain } from "../ui/toasts.tsx";
import { type HiveInfo, type HistoryRow, hive, type Mail, type Question } from "./api.ts";

export const info = signal<HiveInfo | undefined>(undefined);
export const agents = signal<AgentRow[] | undefined>(undefined);
export const rehearsed = signal(false);
export const inbox = signal<Mail[]>([]);
export const questions = signal<Question[]>([]);
export const dead = signal<HistoryRow[]>([]);
/** The newest events, newest last. */
export const recent = signal<EventRow[]>([]);

export const troubled = computed(() => (agents.value ?? []).filter((agent) => agent.state === "failed" || agent.state === "needs_login"));
/** How many things wait for the operator. */
export const waiting = computed(
  () => mine.value.length + dead.value.length + troubled.value.length + inbox.value.length,
);
/** Questions that the operator is to answer. */
export const mine = computed(() => questions.value.filter((question) => question.target === "operator" && question.answer === null));

const RECENT = 2_000;
const GATHER = 150;

type List = "info" | "agents" | "inbox" | "questions" | "dead";

const LOADERS: Record<List, () => Promise<void>> = {
  info: async () => void (info.value = await hive.info()),
  agents: async () => {
    const found = await hive.list();
    agents.value = found.agents;
    rehearsed.value = found.rehearsed === true;
  },
  inbox: async () => void (inbox.value = (await hive.inbox()).messages),
  questions: async () => void (questions.value = (await hive.questions()).questions),
  dead: async () => void (dead.value = (await hive.dead()).messages),
};

const wanted = new Set<List>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Asks for these lists again, soon and once. */
export function refresh(...lists: List[]): void {
  for (const list of lists) wanted.add(list);
  timer ??= setTimeout(() => {
    timer = undefined;
    const now = [...wanted];
    wanted.clear();
    for (const list of now) LOADERS[list]().catch(complain);
  }, GATHER);
}

function touched(event: EventRow): List[] {
  if (event.kind === "stream") return [];
  if (event.kind.startsWith("question")) return ["questions", "info"];
  if (event.kind.startsWith("message")) {
    const about: List[] = event.about === "operator" ? ["inbox"] : [];
    return event.kind.includes("dead") || event.kind.includes("redeliver") || event.kind.includes("discard")
      ? ["dead", "agents", "info"]
      : [...about, "agents"];
  }
  return ["agents"];
}

/** Follows the hive until the returned function is called. */
export function watch(): () => void {
  return follow("/api/events", {
    live: () => refresh("info", "agents", "inbox", "questions", "dead"),
    refused: () => leave("The token is not good any more."),
    event: ({ kind, data }) => {
      if (kind === "gap") {
        refresh("info", "agents", "inbox", "questions", "dead");
        return;
      }
      const event = JSON.parse(data) as EventRow;
      if (event.kind !== "stream") recent.value = [...recent.value.slice(1 - RECENT), event];
      refresh(...touched(event));
    },
  });
}
