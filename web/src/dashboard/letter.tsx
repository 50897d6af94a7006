// A dead letter: a message that no turn could deal with.

import type { HistoryRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { Ago } from "../ui/time.tsx";
import { hive } from "./api.ts";
import { refresh } from "./store.ts";

export function LetterCard({ letter }: { letter: HistoryRow }) {
  const again = (): void => refresh("dead", "state");
  return (
    <>
      <p class="dim">
        Dead letter #{letter.message_id}, <b>{letter.from}</b> → <b>{letter.to}</b>, <Ago at={letter.sent_at} />,{" "}
        {letter.deliveries} deliveries failed
      </p>
      <p class="body">{letter.body}</p>
      <div class="buttons">
        <Action shortcut="a" run={() => hive.redeliver(letter.message_id).finally(again)} class="primary" done="Back in the inbox.">
          Deliver again
        </Action>
        <Action shortcut="d" run={() => hive.discard(letter.message_id).finally(again)} confirm="Throw this message away?" class="danger" done="Thrown away.">
          Discard
        </Action>
        <a class="action" href={`#/agent/${letter.to}`}>See what {letter.to} did</a>
      </div>
    </>
  );
}
