// What the agents' turns cost, by agent and day.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { AgentRow, DayTotal } from "../api/types.ts";
import { ContextGauge } from "../ui/badges.tsx";
import { Chart, type Series } from "../ui/chart.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { everyDay } from "../ui/days.ts";
import { count, dollars } from "../ui/numbers.ts";
import { span } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { agents } from "./store.ts";

/** Rows of the table; the charts have everything. */
const ROWS = 100;
/** As many agents are named by how full their context is. */
const FULLEST = 6;

const tokens = (row: DayTotal): number => row.input_tokens + row.output_tokens + row.cache_read_tokens + row.cache_creation_tokens;

interface Figure {
  title: string;
  of(row: DayTotal): number;
  format(value: number): string;
  /** The largest of all agents counts, and not their sum. */
  largest?: boolean;
}

const FIGURES: Figure[] = [
  { title: "Cost", of: (row) => row.cost_micro_usd, format: dollars },
  { title: "Tokens", of: tokens, format: count },
  { title: "Turns", of: (row) => row.turns, format: count },
  { title: "Failed turns", of: (row) => row.failed, format: count },
  { title: "Time in turns", of: (row) => row.duration_ms, format: span },
  { title: "Fullest context", of: (row) => row.context_tokens, format: count, largest: true },
];

export function Charts({ rows, children }: { rows: DayTotal[]; children?: ComponentChildren }) {
  const days = everyDay(rows.map((row) => row.day));
  const names = [...new Set(rows.map((row) => row.agent))];
  const of = new Map(rows.map((row) => [`${row.agent} ${row.day}`, row]));
  return (
    <div class="charts">
      {FIGURES.map((figure) => {
        const value = (name: string, day: string): number => {
          const row = of.get(`${name} ${day}`);
          return row === undefined ? 0 : figure.of(row);
        };
        const series: Series[] = figure.largest
          ? [{ name: "tokens", values: days.map((day) => Math.max(...names.map((name) => value(name, day)), 0)) }]
          : names.map((name) => ({ name, values: days.map((day) => value(name, day)) }));
        return <Chart key={figure.title} title={figure.title} days={days} series={series} format={figure.format} />;
      })}
      {children}
    </div>
  );
}

/** How full each agent's context is, the fullest first. */
function ContextNow() {
  const all = (agents.value ?? []).filter((agent) => agent.context_window_tokens > 0 && agent.context_tokens > 0);
  if (all.length === 0) return null;
  const share = (agent: AgentRow): number => agent.context_tokens / agent.context_window_tokens;
  const fullest = all.sort((a, b) => share(b) - share(a)).slice(0, FULLEST);
  return (
    <figure class="chart">
      <figcaption>Context now{all.length > FULLEST && <span class="dim"> the fullest {FULLEST} of {all.length}</span>}</figcaption>
      <ul class="contexts">
        {fullest.map((agent) => (
          <li key={agent.name}><a href={`#/agent/${agent.name}`}>{agent.name}</a> <ContextGauge used={agent.context_tokens} window={agent.context_window_tokens} /></li>
        ))}
      </ul>
    </figure>
  );
}

export function TotalsTable({ rows }: { rows: DayTotal[] }) {
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label="Turns by agent and day">
      <table>
        <thead>
          <tr><th>Day</th><th>Agent</th><th>Turns</th><th>Failed</th><th>Put off</th><th>In</th><th>Cached</th><th>Out</th><th>Cost</th><th>Time</th></tr>
        </thead>
        <tbody>
          {rows.slice(0, ROWS).map((row) => (
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
  );
}

export function Stats() {
  const days = useSignal(30);
  const totals = useSignal<DayTotal[] | undefined>(undefined);
  useEffect(() => {
    hive.totals(days.value).then((page) => (totals.value = page.totals), complain);
  }, [days.value]);
  const rows = totals.value;
  return (
    <section class="panel" aria-label="Turn statistics">
      <h2>
        Statistics
        <select aria-label="How far back" value={days.value} onChange={(event) => (days.value = Number(event.currentTarget.value))}>
          {[7, 30, 90, 365].map((value) => <option key={value} value={value}>last {value} days</option>)}
        </select>
      </h2>
      {rows === undefined ? <Nothing title="Loading …" /> : rows.length === 0 ? (
        <Nothing title={`No turns in the last ${days.value} days.`}><p>Every turn of an agent is counted here.</p></Nothing>
      ) : (
        <>
          <Charts rows={rows}><ContextNow /></Charts>
          <TotalsTable rows={rows} />
          {rows.length > ROWS && <p class="dim">The newest {ROWS} of {rows.length} rows; <code>hive-c0re stats</code> has all.</p>}
        </>
      )}
    </section>
  );
}
