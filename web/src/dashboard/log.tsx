// The newest events of the hive, to look something up.

import { useSignal } from "@preact/signals";
import { Nothing } from "../ui/nothing.tsx";
import { recent } from "./store.ts";

const SHOWN = 300;

export function Log() {
  const filter = useSignal("");
  const all = recent.value.map((event) => ({ event, line: `${event.about} ${event.kind} ${JSON.stringify(event.data)}` }));
  const found = all.filter(({ line }) => line.includes(filter.value)).slice(-SHOWN).reverse();
  function download(): void {
    const text = all.map(({ event }) => JSON.stringify(event)).join("\n");
    const url = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = "hive-events.jsonl";
    anchor.click();
    URL.revokeObjectURL(url);
  }
  return (
    <section class="panel" aria-label="Log">
      <h2>
        Log
        <input placeholder="/ filter" id="filter" aria-label="Filter events" value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
        <button type="button" class="action small" onClick={download}>Download</button>
      </h2>
      {found.length === 0 ? <Nothing title="No events match." /> : (
        <div class="table-frame">
          <table>
            <thead><tr><th>When</th><th>About</th><th>What</th><th>Particulars</th></tr></thead>
            <tbody>
              {found.map(({ event }) => (
                <tr key={event.seq}>
                  <td class="data">{new Date(event.at).toLocaleTimeString()}</td>
                  <td class="data">{event.about}</td>
                  <td class="data">{event.kind}</td>
                  <td class="data">{JSON.stringify(event.data)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
