// A dead letter: a message that no turn could deal with.

import { Action } from "../ui/action.tsx";
import { Ago } from "../ui/time.tsx";
import { type HistoryRow, hive } from "./api.ts";
import { refresh } from "./store.ts";

export function LetterCard({ letter }: { letter: HistoryRow }) {
  const again = (): void => refresh("dead", "agents", "info");
  return (
    <>
      <p class="dim">
        Dead letter #{letter.message_id}, <b>{letter.from}</b> → <b>{letter.to}</b>, <Ago at={letter.sent_at} />,{" "}
        {letter.deliveries} deliveries failed
      </p>
      <p class="body">{letter.body}</p>
      <div class="buttons">
        <Action run={() => hive.redeliver(letter.message_id).then(again)} class="primary" done="Back in the inbox.">
          Deliver again
        </Action>
        <Action run={() => hive.discard(letter.message_id).then(again)} confirm="Throw this message away?" class="danger">
          Discard
        </Action>
      </div>
    </>
  );
}
