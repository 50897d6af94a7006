// A message to the operator, with a reply box.

import { useSignal } from "@preact/signals";
import { Action } from "../ui/action.tsx";
import { Ago } from "../ui/time.tsx";
import { hive, type Mail } from "./api.ts";
import { refresh } from "./store.ts";

export function MailCard({ mail }: { mail: Mail }) {
  const reply = useSignal<string | undefined>(undefined);
  const settle = async (): Promise<void> => {
    await hive.ack([mail.id]);
    refresh("inbox", "info");
  };
  return (
    <>
      <p class="dim">
        <b>{mail.from}</b> writes, <Ago at={mail.sent_at} />
        {mail.in_reply_to !== null && <> · answer to #{mail.in_reply_to}</>}
      </p>
      <p class="body">{mail.body}</p>
      {reply.value !== undefined && (
        <textarea
          rows={3}
          aria-label={`Reply to ${mail.from}`}
          value={reply.value}
          onInput={(event) => (reply.value = event.currentTarget.value)}
        />
      )}
      <div class="buttons">
        {reply.value === undefined ? (
          <button type="button" class="action" onClick={() => (reply.value = "")}>Reply</button>
        ) : (
          <Action
            class="primary"
            disabled={reply.value.trim() === ""}
            done="Sent."
            run={async () => {
              await hive.send(mail.from, reply.value ?? "", mail.id);
              await settle();
            }}
          >
            Send reply
          </Action>
        )}
        <Action run={settle}>Done</Action>
      </div>
    </>
  );
}
