// A message to the operator, with a reply box.

import { useSignal } from "@preact/signals";
import type { Mail } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { Markdown } from "../ui/rich.tsx";
import { Tall } from "../ui/tall.tsx";
import { Ago } from "../ui/time.tsx";
import { hive } from "./api.ts";
import { refresh } from "./store.ts";

/** Who cannot be written to. */
const VOICES = new Set(["system", "operator", "reminder"]);

export function MailCard({ mail }: { mail: Mail }) {
  const reply = useSignal<string | undefined>(undefined);
  const settle = async (): Promise<void> => {
    await hive.ack([mail.id]);
    refresh("inbox", "state");
  };
  return (
    <>
      <p class="dim">
        <b>{mail.from}</b> writes, <Ago at={mail.sent_at} />
        {mail.in_reply_to !== null && <> · <a href={`#/thread/${mail.in_reply_to}`}>answer to #{mail.in_reply_to}</a></>}
      </p>
      <Tall><Markdown text={mail.body} /></Tall>
      {reply.value !== undefined && (
        <textarea
          rows={3}
          autoFocus
          aria-label={`Reply to ${mail.from}`}
          value={reply.value}
          onInput={(event) => (reply.value = event.currentTarget.value)}
        />
      )}
      <div class="buttons">
        <Action shortcut="a" run={settle} title="Takes it out of this list">Done</Action>
        {reply.value === undefined ? (
          !VOICES.has(mail.from) && <button type="button" class="action" data-key="c" onClick={() => (reply.value = "")}>Reply</button>
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
      </div>
    </>
  );
}
