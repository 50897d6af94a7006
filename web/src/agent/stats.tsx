// One agent's turns: sums by day, and the turns themselves, newest first.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DayTotal, TurnRow } from "../api/types.ts";
import { Charts } from "../dashboard/stats.tsx";
import { Chart } from "../ui/chart.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { count, dollars } from "../ui/numbers.ts";
import { Ago, span } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import type { AgentApi } from "./api.ts";

const MOST = 300;
/** How many turns the charts show. */
const SHOWN = 50;

/** How full the context was and how long it took, turn by turn, oldest first. */
function PerTurn({ turns }: { turns: TurnRow[] }) {
  const shown = turns.slice(0, SHOWN).reverse();
  if (shown.length < 2) return null;
  const labels = shown.map((turn) => new Date(turn.started_at).toLocaleString([], { dateStyle: "short", timeStyle: "short" }));
  return (
    <div class="charts">
      <Chart title="Context by turn" days={labels} series={[{ name: "tokens", values: shown.map((turn) => turn.context_tokens) }]} format={count} />
      <Chart title="Time by turn" days={labels} series={[{ name: "time", values: shown.map((turn) => turn.duration_ms) }]} format={span} />
    </div>
  );
}

export function AgentStats({ api }: { api: AgentApi }) {
  const totals = useSignal<DayTotal[] | undefined>(undefined);
  const turns = useSignal<TurnRow[]>([]);
  const next = useSignal<number | null>(null);
  useEffect(() => {
    api.stats().then((page) => (totals.value = page.totals), complain);
    api.turns().then((page) => {
      turns.value = page.turns;
      next.value = page.next;
    }, complain);
  }, [api]);
  async function older(): Promise<void> {
    if (next.value === null) return;
    const page = await api.turns(next.value);
    turns.value = [...turns.value, ...page.turns].slice(-MOST);
    next.value = page.next;
  }
  if (totals.value === undefined) return <Nothing title="Loading …" />;
  if (totals.value.length === 0 && turns.value.length === 0) return <Nothing title="No turns yet."><p>Every turn is counted here.</p></Nothing>;
  return (
    <>
      <Charts rows={totals.value} />
      <PerTurn turns={turns.value} />
      <div class="table-frame" tabIndex={0} role="region" aria-label="Turns, newest first">
        <table>
          <thead><tr><th>When</th><th>What for</th><th>How it ended</th><th>Time</th><th>Read</th><th>Wrote</th><th>Context</th><th>Cost</th><th>Tools</th></tr></thead>
          <tbody>
            {turns.value.map((turn) => (
              <tr key={turn.turn_row_id}>
                <td><Ago at={turn.started_at} /></td>
                <td class="data">{turn.kind}</td>
                <td class="data" title={turn.note ?? ""}>{turn.outcome.replaceAll("_", " ")}</td>
                <td class="data">{span(turn.duration_ms)}</td>
                <td class="data">{count(turn.input_tokens + turn.cache_read_tokens + turn.cache_creation_tokens)}</td>
                <td class="data">{count(turn.output_tokens)}</td>
                <td class="data">{turn.window > 0 ? `${Math.round((turn.context_tokens / turn.window) * 100)}%` : ""}</td>
                <td class="data">{dollars(turn.cost_micro_usd)}</td>
                <td class="data">{turn.tools.map((tool) => `${tool.name.split("__").at(-1) ?? ""}×${tool.count}`).join(" ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {next.value !== null && <button type="button" class="action" onClick={() => void older().catch(complain)}>Older</button>}
    </>
  );
}
