// The hive's messages, newest first; a message opens its thread.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Nothing } from "../ui/nothing.tsx";
import { Ago } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import { type HistoryRow, hive } from "./api.ts";
import { SendForm } from "./send.tsx";
import { recent } from "./store.ts";

const PAGE = 50;

export function Flow() {
  const rows = useSignal<HistoryRow[] | undefined>(undefined);
  const next = useSignal<number | null>(null);
  const thread = useSignal<number | undefined>(undefined);
  const stored = recent.value.filter((event) => event.kind.startsWith("message")).length;

  useEffect(() => {
    const which = thread.value === undefined ? {} : { thread: thread.value };
    hive.history({ ...which, limit: PAGE }).then((page) => {
      rows.value = page.messages;
      next.value = page.next;
    }, complain);
  }, [stored, thread.value]);

  async function more(): Promise<void> {
    if (next.value === null) return;
    const which = thread.value === undefined ? {} : { thread: thread.value };
    const page = await hive.history({ ...which, before: next.value, limit: PAGE });
    rows.value = [...(rows.value ?? []), ...page.messages];
    next.value = page.next;
  }

  return (
    <>
      <SendForm />
      <section class="panel" aria-label="Messages">
        <h2>
          {thread.value === undefined ? "Messages" : `Thread of #${thread.value}`}
          {thread.value !== undefined && (
            <button type="button" class="quiet" onClick={() => (thread.value = undefined)}>show all</button>
          )}
        </h2>
        {rows.value === undefined ? <Nothing title="Loading …" /> : rows.value.length === 0 ? (
          <Nothing title="No messages yet."><p>Send one above.</p></Nothing>
        ) : (
          <ul class="cards">
            {rows.value.map((row) => (
              <li key={row.message_id} class="card">
                <p class="dim">
                  <button type="button" class="quiet" onClick={() => (thread.value = row.message_id)}>#{row.message_id}</button>{" "}
                  <b>{row.from}</b> → <b>{row.to}</b>, <Ago at={row.sent_at} /> · {row.state}
                  {row.deliveries > 1 && ` · ${row.deliveries} deliveries`}
                </p>
                <p class="body">{row.body}</p>
              </li>
            ))}
          </ul>
        )}
        {next.value !== null && <button type="button" class="action" onClick={() => void more().catch(complain)}>Older</button>}
      </section>
    </>
  );
}
