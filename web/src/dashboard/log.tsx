// The newest events of the hive, to look something up, and the whole log as a file.

import { useSignal } from "@preact/signals";
import { download } from "../api/client.ts";
import { Action } from "../ui/action.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { agents, recent } from "./store.ts";

const SHOWN = 200;

export function Log() {
  const filter = useSignal("");
  const about = useSignal("");
  const held = useSignal<typeof recent.value | undefined>(undefined);
  const wanted = filter.value.toLowerCase();
  const all = (held.value ?? recent.value).filter((event) => about.value === "" || event.about === about.value);
  const lines = all.map((event) => ({ event, particulars: JSON.stringify(event.data) }));
  const found = lines.filter(({ event, particulars }) => `${event.about} ${event.kind} ${particulars}`.toLowerCase().includes(wanted)).slice(-SHOWN).reverse();
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
        <Action class="small" run={save("csv")}>as a table</Action>
        <button type="button" class="action small" aria-pressed={held.value !== undefined} onClick={() => (held.value = held.value === undefined ? recent.value : undefined)}>
          {held.value === undefined ? "Hold" : "Go on"}
        </button>
      </h2>
      {found.length === 0 ? (
        <Nothing title={all.length === 0 ? "Nothing has happened since you opened this page." : "No events match."}>
          <p>Download has the whole log, also from before.</p>
        </Nothing>
      ) : (
        <div class="table-frame" tabIndex={0} role="region" aria-label="Table of events">
          <table>
            <thead><tr><th>When</th><th>About</th><th>What</th><th>Particulars</th></tr></thead>
            <tbody>
              {found.map(({ event, particulars }) => (
                <tr key={event.seq}>
                  <td class="data">{new Date(event.at).toLocaleTimeString()}</td>
                  <td class="data">{event.about}</td>
                  <td class="data">{event.kind}</td>
                  <td class="data">{particulars.length > 600 ? `${particulars.slice(0, 600)}…` : particulars}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
