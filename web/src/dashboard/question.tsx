// A question with its suggested answers; free text is always possible.

import { useSignal } from "@preact/signals";
import { Action } from "../ui/action.tsx";
import { hive, type Question } from "./api.ts";
import { refresh } from "./store.ts";

export function QuestionCard({ question }: { question: Question }) {
  const chosen = useSignal<string[]>([]);
  const free = useSignal("");
  const answer = [...chosen.value, ...(free.value.trim() === "" ? [] : [free.value.trim()])].join(", ");
  function choose(option: string, on: boolean): void {
    if (!question.multi) chosen.value = [option];
    else chosen.value = on ? [...chosen.value, option] : chosen.value.filter((one) => one !== option);
  }
  return (
    <>
      <p class="body">{question.question}</p>
      {question.options.length > 0 && (
        <fieldset>
          <legend class="hidden">Suggested answers</legend>
          {question.options.map((option) => (
            <label key={option}>
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
      />
      <div class="buttons">
        <Action
          class="primary"
          disabled={answer === ""}
          done="Answered."
          run={async () => {
            await hive.answer(question.question_id, answer);
            refresh("questions", "info");
          }}
        >
          Answer
        </Action>
      </div>
    </>
  );
}
