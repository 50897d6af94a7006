// A question with its suggested answers; free text is always possible.

import { useSignal } from "@preact/signals";
import { ApiError } from "../api/client.ts";
import type { Question } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { Ago } from "../ui/time.tsx";
import { tell } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { refresh } from "./store.ts";

export function QuestionCard({ question }: { question: Question }) {
  const chosen = useSignal<string[]>([]);
  const free = useSignal("");
  const answer = [...chosen.value, ...(free.value.trim() === "" ? [] : [free.value.trim()])].join(", ");
  function choose(option: string, on: boolean): void {
    if (!question.multi) chosen.value = [option];
    else chosen.value = on ? [...chosen.value, option] : chosen.value.filter((one) => one !== option);
  }
  async function reply(): Promise<void> {
    try {
      await hive.answer(question.question_id, answer);
      tell("Answered.");
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      tell("It was answered already, in another window or by its end.");
    } finally {
      refresh("questions", "state");
    }
  }
  return (
    <>
      <p class="dim">
        <b>{question.asker}</b> asks, <Ago at={question.asked_at} />
        {question.expires_at !== null && <>, expires <Ago at={question.expires_at} /></>}
      </p>
      <p class="body">{question.question}</p>
      {question.options.length > 0 && (
        <fieldset>
          <legend class="hidden">Suggested answers</legend>
          {question.options.map((option, index) => (
            <label key={index} class="option">
              <input
                type={question.multi ? "checkbox" : "radio"}
                name={`q${question.question_id}`}
                checked={chosen.value.includes(option)}
                onChange={(event) => choose(option, event.currentTarget.checked)}
              />{" "}
              {option}
            </label>
          ))}
        </fieldset>
      )}
      <input
        aria-label="Answer in your own words"
        placeholder={question.options.length > 0 ? "… or in your own words" : "Answer"}
        value={free.value}
        onInput={(event) => (free.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && answer !== "" && !event.isComposing) event.currentTarget.closest("li")?.querySelector<HTMLElement>(".primary")?.click();
        }}
      />
      <div class="buttons">
        <Action class="primary" shortcut="a" disabled={answer === ""} run={reply}>Answer</Action>
      </div>
    </>
  );
}
