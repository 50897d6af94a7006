// What the agents' turns cost, by agent and day.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DayTotal } from "../agent/api.ts";
import { Nothing } from "../ui/nothing.tsx";
import { count, dollars } from "../ui/numbers.ts";
import { span } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";

const DAYS = 30;

export function Stats() {
  const totals = useSignal<DayTotal[] | undefined>(undefined);
  useEffect(() => {
    hive.totals(DAYS).then((page) => (totals.value = page.totals), complain);
  }, []);
  const rows = totals.value;
  if (rows === undefined) return <Nothing title="Loading …" />;
  if (rows.length === 0) {
    return <Nothing title="No turns in the last 30 days."><p>Every turn of an agent is counted here.</p></Nothing>;
  }
  const days = [...new Set(rows.map((row) => row.day))].sort();
  const cost = (day: string): number => rows.filter((row) => row.day === day).reduce((sum, row) => sum + row.cost_micro_usd, 0);
  const most = Math.max(1, ...days.map(cost));
  return (
    <section class="panel" aria-label="Turn statistics">
      <h2>Cost per day <span class="dim">last {DAYS} days</span></h2>
      <div class="bars" role="img" aria-label={days.map((day) => `${day}: ${dollars(cost(day))}`).join(", ")}>
        {days.map((day) => <div key={day} title={`${day}: ${dollars(cost(day))}`} style={{ height: `${(cost(day) / most) * 100}%` }} />)}
      </div>
      <div class="table-frame">
        <table>
          <thead>
            <tr><th>Day</th><th>Agent</th><th>Turns</th><th>Failed</th><th>Put off</th><th>In</th><th>Cached</th><th>Out</th><th>Cost</th><th>Time</th></tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={`${row.day}${row.agent}`}>
                <td class="data">{row.day}</td><td class="data">{row.agent}</td><td class="data">{row.turns}</td>
                <td class="data">{row.failed}</td><td class="data">{row.deferred}</td><td class="data">{count(row.input_tokens)}</td>
                <td class="data">{count(row.cache_read_tokens)}</td><td class="data">{count(row.output_tokens)}</td>
                <td class="data">{dollars(row.cost_micro_usd)}</td><td class="data">{span(row.duration_ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
