// The hive's messages, newest first; a message opens its thread.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { HistoryRow, MessageState } from "../api/types.ts";
import { known } from "../ui/known.ts";
import { Nothing } from "../ui/nothing.tsx";
import { Markdown } from "../ui/rich.tsx";
import { Tall } from "../ui/tall.tsx";
import { Ago } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { route } from "../ui/route.ts";
import { SendForm } from "./send.tsx";
import { agents, mailMoved } from "./store.ts";

const PAGE = 50;
/** The most messages on the page: older ones push newer ones out. */
const MOST = 200;

/** Where a message stands, in words, with more of them for who points at it. */
const STANDINGS: Record<MessageState, [word: string, more: string]> = {
  stored: ["waiting", "It is in the inbox; no turn has taken it yet"],
  leased: ["being read", "A turn deals with it now"],
  acked: ["done", "A turn has dealt with it"],
  dead: ["dead letter", "No turn could deal with it; it waits on the overview"],
  discarded: ["thrown away", "You discarded it"],
};

function Standing({ state }: { state: MessageState }) {
  const [word, more] = known(STANDINGS, state) ?? [state, ""];
  return <span class={state === "dead" ? "bad" : ""} title={more}>{word}</span>;
}

function Message({ row }: { row: HistoryRow }) {
  return (
    <li class="card message" id={`message-${row.message_id}`}>
      <p class="dim">
        <a href={`#/thread/${row.message_id}`} title="Show the whole thread">#{row.message_id}</a>{" "}
        <b>{row.from}</b> → <b>{row.to}</b>, <Ago at={row.sent_at} /> · <Standing state={row.state} />
        {row.deliveries > 1 && ` · ${row.deliveries} deliveries`}
        {row.in_reply_to !== null && <> · answer to <a href={`#/thread/${row.in_reply_to}`}>#{row.in_reply_to}</a></>}
      </p>
      <Tall><Markdown text={row.body} /></Tall>
    </li>
  );
}

export function Flow() {
  const rows = useSignal<HistoryRow[] | undefined>(undefined);
  const next = useSignal<number | null>(null);
  const skipped = useSignal(false);
  const partner = useSignal("");
  const opened = route.value.startsWith("thread/") ? Number(route.value.slice("thread/".length)) : undefined;
  const which = { ...(opened === undefined ? {} : { thread: opened }), ...(partner.value === "" ? {} : { with: partner.value }) };
  const moved = mailMoved.value;

  useEffect(() => {
    if (skipped.value) return; // The reader is in the past: news would move it under their eyes.
    const timer = setTimeout(() => {
      hive.history({ ...which, limit: PAGE }).then((page) => {
        rows.value = page.messages;
        next.value = page.next;
      }, complain);
    }, rows.value === undefined ? 0 : 300);
    return () => clearTimeout(timer);
  }, [moved, opened, partner.value, skipped.value]);

  async function older(): Promise<void> {
    if (next.value === null) return;
    const page = await hive.history({ ...which, before: next.value, limit: PAGE });
    rows.value = [...(rows.value ?? []), ...page.messages].slice(-MOST);
    next.value = page.next;
    skipped.value = true;
  }

  return (
    <>
      <SendForm />
      <section class="panel" aria-label="Messages">
        <h2>
          {opened === undefined ? "Messages" : `Thread of #${opened}`}
          {opened !== undefined && <a href="#/messages">show all</a>}
          {opened === undefined && (
            <select aria-label="Only messages with" value={partner.value} onChange={(event) => (partner.value = event.currentTarget.value)}>
              <option value="">of everybody</option>
              <option value="operator">with you</option>
              {(agents.value ?? []).map((agent) => <option key={agent.name} value={agent.name}>with {agent.name}</option>)}
            </select>
          )}
        </h2>
        {skipped.value && (
          <p>
            <button type="button" class="action" onClick={() => (skipped.value = false)}>Back to the newest</button>
          </p>
        )}
        {rows.value === undefined ? <Nothing title="Loading …" /> : rows.value.length === 0 ? (
          <Nothing title="No messages yet."><p>Send one above.</p></Nothing>
        ) : (
          <ul class="cards">{rows.value.map((row) => <Message key={row.message_id} row={row} />)}</ul>
        )}
        {next.value !== null && <button type="button" class="action" onClick={() => void older().catch(complain)}>Older</button>}
      </section>
    </>
  );
}
