// Everything that waits for the operator, in one list, oldest first.

import { computed } from "@preact/signals";
import type { AgentRow, Approval, HistoryRow, Mail, Question } from "../api/types.ts";
import { approvals, dead, inbox, mine, troubled } from "./store.ts";

export type Item = { id: string; at: string } & (
  | { kind: "approval"; approval: Approval }
  | { kind: "question"; question: Question }
  | { kind: "letter"; letter: HistoryRow }
  | { kind: "agent"; agent: AgentRow }
  | { kind: "mail"; mail: Mail }
);

/** What blocks an agent comes before what only tells something; within that the oldest first. */
const URGENCY: Record<Item["kind"], number> = { approval: 0, question: 0, agent: 0, letter: 1, mail: 2 };

export const items = computed<Item[]>(() => {
  const all: Item[] = [
    ...approvals.value.map((approval): Item => ({ id: `p${approval.approval_id}`, at: approval.requested_at, kind: "approval", approval })),
    ...mine.value.map((question): Item => ({ id: `q${question.question_id}`, at: question.asked_at, kind: "question", question })),
    ...troubled.value.map((agent): Item => ({ id: `a-${agent.name}`, at: agent.turn_state_since ?? agent.created_at, kind: "agent", agent })),
    ...dead.value.map((letter): Item => ({ id: `d${letter.message_id}`, at: letter.sent_at, kind: "letter", letter })),
    ...inbox.value.map((mail): Item => ({ id: `m${mail.id}`, at: mail.sent_at, kind: "mail", mail })),
  ];
  return all.sort((a, b) => URGENCY[a.kind] - URGENCY[b.kind] || Date.parse(a.at) - Date.parse(b.at));
});
