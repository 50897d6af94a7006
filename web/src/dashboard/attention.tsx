// What needs the operator now, oldest first.

import { Nothing } from "../ui/nothing.tsx";
import { Ago } from "../ui/time.tsx";
import { Action } from "../ui/action.tsx";
import { hive } from "./api.ts";
import { LetterCard } from "./letter.tsx";
import { MailCard } from "./mail-card.tsx";
import { QuestionCard } from "./question.tsx";
import { dead, inbox, mine, refresh, troubled, waiting } from "./store.ts";

export function Attention() {
  return (
    <section class="panel" aria-label="What needs you">
      <h2>
        Needs you <span class="dim">{waiting.value === 0 ? "" : waiting.value}</span>
      </h2>
      {waiting.value === 0 ? (
        <Nothing title="Nothing waits for you.">
          <p>Questions, failed agents, dead letters and mail to you appear here.</p>
        </Nothing>
      ) : (
        <ul class="cards">
          {troubled.value.map((agent) => (
            <li key={`a${agent.name}`} class="card bad">
              <p>
                <b>{agent.name}</b> {agent.state === "failed" ? "failed" : "needs a login"}
                {agent.note ? `: ${agent.note}` : ""}
              </p>
              <div class="buttons">
                {agent.state === "failed" && (
                  <Action run={() => hive.start(agent.name).then(() => refresh("agents"))} class="primary">Start it again</Action>
                )}
                <a href={`#/agent/${agent.name}`}>Open {agent.name}</a>
              </div>
            </li>
          ))}
          {mine.value.map((question) => (
            <li key={`q${question.question_id}`} class="card">
              <p class="dim">
                <b>{question.asker}</b> asks, <Ago at={question.asked_at} />
                {question.expires_at !== null && <>, expires <Ago at={question.expires_at} /></>}
              </p>
              <QuestionCard question={question} />
            </li>
          ))}
          {dead.value.map((letter) => (
            <li key={`d${letter.message_id}`} class="card bad">
              <LetterCard letter={letter} />
            </li>
          ))}
          {inbox.value.map((mail) => (
            <li key={`m${mail.id}`} class="card">
              <MailCard mail={mail} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
