// What was decided: approvals and questions that are settled, for whoever looks back.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Approval, Question } from "../api/types.ts";
import { Diff } from "../ui/diff.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { Ago } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { absent, approvals, questions } from "./store.ts";

const SHOWN = 50;

export function Decisions() {
  const decided = useSignal<Approval[] | undefined>(undefined);
  const answered = useSignal<Question[] | undefined>(undefined);
  useEffect(() => {
    hive.approvals(true).catch(absent({ approvals: [] })).then((list) => (decided.value = list.approvals.filter((one) => one.state !== "pending")), complain);
    hive.questions({ all: true }).then((list) => (answered.value = list.questions.filter((one) => one.answer !== null).reverse()), complain);
  }, [approvals.value, questions.value]);
  return (
    <>
      <section class="panel" aria-label="Decided approvals">
        <h2>Approvals</h2>
        {decided.value === undefined ? <Nothing title="Loading …" /> : decided.value.length === 0 ? (
          <Nothing title="Nothing has been decided yet."><p>Requests for new agents and changed configurations wait on the overview.</p></Nothing>
        ) : (
          <ul class="cards">
            {decided.value.slice(0, SHOWN).map((one) => (
              <li key={one.approval_id} class={one.state === "approved" ? "card settled" : "card bad"}>
                <p>
                  <b>{one.state}</b>: {one.kind === "spawn" ? "new agent" : "change of"} <b>{one.agent}</b>, asked by {one.requested_by}
                  {one.decided_at !== null && <span class="dim">, <Ago at={one.decided_at} /></span>}
                  {one.note !== "" && <> — {one.note}</>}
                </p>
                <details>
                  <summary class="dim">what it was · <code>{one.hash.slice(0, 16)}</code></summary>
                  <Diff switches piece={{ kind: "patch", text: one.diff }} />
                </details>
              </li>
            ))}
          </ul>
        )}
      </section>
      <section class="panel" aria-label="Answered questions">
        <h2>Questions</h2>
        {answered.value === undefined ? <Nothing title="Loading …" /> : answered.value.length === 0 ? <Nothing title="No question has been answered yet." /> : (
          <ul class="cards">
            {answered.value.slice(0, SHOWN).map((one) => (
              <li key={one.question_id} class="card settled">
                <p class="dim"><b>{one.asker}</b> asked <b>{one.target}</b>, <Ago at={one.asked_at} /></p>
                <p class="body">{one.question}</p>
                <p class={one.answer === "[expired]" ? "dim" : ""}>{one.answer === "[expired]" ? "expired without an answer" : one.answer}</p>
              </li>
            ))}
          </ul>
        )}
      </section>
    </>
  );
}
