// The newest events of the hive, to look something up, and the whole log as a file.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { download, getLines } from "../api/client.ts";
import type { EventRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { complain } from "../ui/toasts.tsx";
import { Particulars } from "./particulars.tsx";
import { agents, recent } from "./store.ts";

const SHOWN = 200;
/** How long the reader types before the host is asked. */
const PAUSE = 300;

/** The newest events of the host's log, oldest first, without what harnesses tell in detail. */
async function past(about: string, contains: string, signal: AbortSignal): Promise<EventRow[]> {
  const asked = new URLSearchParams({ brief: "true", limit: String(SHOWN) });
  if (about !== "") asked.set("about", about);
  if (contains !== "") asked.set("contains", contains);
  const lines = await getLines(`/api/log?${asked.toString()}`, signal);
  return lines.map((line) => JSON.parse(line) as EventRow);
}

export function Log() {
  const filter = useSignal("");
  const about = useSignal("");
  const held = useSignal<typeof recent.value | undefined>(undefined);
  const earlier = useSignal<EventRow[] | undefined>(undefined);
  // What happened before the page was opened, as far as the host still has it.
  useEffect(() => {
    const asked = new AbortController();
    const pause = earlier.value === undefined ? 0 : PAUSE;
    const timer = setTimeout(() => {
      past(about.value, filter.value, asked.signal).then((events) => (earlier.value = events), (error) => asked.signal.aborted || complain(error));
    }, pause);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [about.value, filter.value]);
  const wanted = filter.value.toLowerCase();
  const before = earlier.value ?? [];
  const newest = before.at(-1)?.seq ?? 0;
  const since = (held.value ?? recent.value).filter((event) => event.seq > newest && (about.value === "" || event.about === about.value));
  const all = [...before, ...since];
  const found = all.filter((event) => JSON.stringify(event).toLowerCase().includes(wanted)).slice(-SHOWN).reverse();
  const save = (format: "jsonl" | "csv") => (): Promise<void> => {
    const asked = new URLSearchParams({ format });
    if (about.value !== "") asked.set("about", about.value);
    if (filter.value !== "") asked.set("contains", filter.value);
    return download(`/api/log?${asked.toString()}`, `hive-events.${format}`);
  };
  return (
    <section class="panel" aria-label="Log">
      <h2>
        Log
        <input placeholder="/ filter" id="filter" aria-label="Filter events" value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
        <select aria-label="Only events about" value={about.value} onChange={(event) => (about.value = event.currentTarget.value)}>
          <option value="">about everybody</option>
          <option value="operator">about you</option>
          {(agents.value ?? []).map((agent) => <option key={agent.name} value={agent.name}>about {agent.name}</option>)}
        </select>
        <Action class="small" run={save("jsonl")}>Download</Action>
        <Action class="small" run={save("csv")}>Download as a table</Action>
        <button type="button" class="action small" aria-pressed={held.value !== undefined} onClick={() => (held.value = held.value === undefined ? recent.value : undefined)}>
          {held.value === undefined ? "Hold" : "Go on"}
        </button>
      </h2>
      {found.length === 0 ? (
        <Nothing title={earlier.value === undefined ? "Loading …" : filter.value === "" && about.value === "" ? "Nothing has happened yet." : "No events match."}>
          <p>What agents do in detail is on their own pages, and in the download.</p>
        </Nothing>
      ) : (
        <div class="table-frame" tabIndex={0} role="region" aria-label="Table of events">
          <table class="events">
            <thead><tr><th>When</th><th>About</th><th>What</th><th>Particulars</th></tr></thead>
            <tbody>
              {found.map((event) => (
                <tr key={event.seq}>
                  <td class="data"><time dateTime={event.at} title={new Date(event.at).toLocaleString()}>{new Date(event.at).toLocaleTimeString()}</time></td>
                  <td class="data">{event.about}</td>
                  <td class="data">{event.kind}</td>
                  <td class="data"><Particulars data={event.data} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
