// The agents, one row each, with the buttons that fit their state.

import { computed, signal, useSignal } from "@preact/signals";
import type { AgentRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { ContextGauge, Held, HostNetwork, NoIsolation, Restarts, Stale, StateBadge } from "../ui/badges.tsx";
import { Mark } from "../ui/mark.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { dollars } from "../ui/numbers.ts";
import { word } from "../ui/settings.ts";
import { Ago } from "../ui/time.tsx";
import { hive } from "./api.ts";
import { AgentButtons, isRunning } from "./agent-buttons.tsx";
import { StopAll } from "./stop-all.tsx";
import { agents, refresh } from "./store.ts";

/** What is on the page at once. */
const SHOWN = 60;

type Column = "name" | "state" | "context" | "waiting" | "cost" | "restarts" | "activity";

const BY: Record<Column, (agent: AgentRow) => string | number> = {
  name: (agent) => agent.name,
  state: (agent) => agent.state,
  context: (agent) => -agent.context_tokens / Math.max(1, agent.context_window_tokens),
  waiting: (agent) => -(agent.unread + agent.inflight),
  cost: (agent) => -agent.cost_today_micro_usd,
  restarts: (agent) => -(agent.restarts ?? 0),
  activity: (agent) => -Date.parse(agent.turn_state_since ?? agent.created_at),
};

const sorted = signal<Column>("name");
const filter = signal("");
const chosen = signal<string[]>([]);

const found = computed(() => {
  const wanted = filter.value.trim().toLowerCase();
  const all = (agents.value ?? []).filter((agent) => `${agent.name} ${agent.state.replace("_", " ")} ${agent.status} ${agent.model}`.toLowerCase().includes(wanted));
  const by = BY[sorted.value];
  return all.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0));
});

function Head({ column, children }: { column: Column; children: string }) {
  const here = sorted.value === column;
  return (
    <th aria-sort={here ? "ascending" : "none"}>
      <button type="button" class="quiet" onClick={() => (sorted.value = column)}>{children}{here ? " ▾" : ""}</button>
    </th>
  );
}

function Row({ agent }: { agent: AgentRow }) {
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          aria-label={`Choose ${agent.name}`}
          checked={chosen.value.includes(agent.name)}
          onChange={(event) => {
            const others = chosen.value.filter((name) => name !== agent.name);
            chosen.value = event.currentTarget.checked ? [...others, agent.name] : others;
          }}
        />
      </td>
      <td class="data">
        <Mark of={agent.name} /> <a href={`#/agent/${agent.name}`}>{agent.name}</a>
        <span class="links">
          {(agent.links ?? []).map((link) => (
            <a key={link.url} href={link.url} title={`${link.label}: ${link.url}`} target="_blank" rel="noopener noreferrer nofollow">{link.icon || "↗"}</a>
          ))}
        </span>
      </td>
      <td>
        <StateBadge state={agent.state} tool={agent.state === "thinking" ? agent.current_tool : null} />
        <Held until={agent.held_until} />
        <Stale agent={agent} rebuild={() => hive.rebuild(agent.name).then(() => refresh("state"))} />
        <NoIsolation runtime={agent.runtime} />
        <HostNetwork runtime={agent.runtime} network={agent.network} />
      </td>
      <td class="said-of-itself">{agent.status || <span class="dim">{agent.note ?? ""}</span>}</td>
      <td><ContextGauge used={agent.context_tokens} window={agent.context_window_tokens} /></td>
      <td class="data">{agent.unread + agent.inflight}</td>
      <td class="data">{dollars(agent.cost_today_micro_usd)}</td>
      <td class="data"><Restarts agent={agent} /></td>
      <td class="data">{agent.turn_state_since === null ? <span class="dim">never</span> : <Ago at={agent.turn_state_since} />}</td>
      <td class="data">{agent.model}</td>
      <td><AgentButtons agent={agent} /></td>
    </tr>
  );
}

/** What can be done to several agents at once. */
function Many() {
  const names = chosen.value;
  if (names.length === 0) return null;
  const all = (work: (name: string) => Promise<unknown>) => async (): Promise<void> => {
    try {
      for (const name of names) await work(name);
      chosen.value = [];
    } finally {
      refresh("state");
    }
  };
  return (
    <div class="buttons" role="group" aria-label={`${names.length} chosen agents`}>
      <span class="dim">{names.length} chosen:</span>
      <Action class="small" run={all(hive.start)}>{word("Start")}</Action>
      <Action class="small" run={all(hive.restart)} confirm={`Restart ${names.join(", ")}?`}>{word("Restart")}</Action>
      <Action class="small" run={all(hive.stop)} confirm={`Stop ${names.join(", ")}? Their mail waits.`}>{word("Stop")}</Action>
      <button type="button" class="quiet" onClick={() => (chosen.value = [])}>choose none</button>
    </div>
  );
}

export function Fleet() {
  const most = useSignal(SHOWN);
  const all = agents.value;
  if (all === undefined) return <Nothing title="Loading the agents …" />;
  const stale = all.filter((agent) => agent.stale === true);
  return (
    <section class="panel" aria-label="Agents">
      <h2>
        Agents <span class="dim">{all.length}</span>
        <input
          id="filter"
          placeholder="/ filter"
          aria-label="Filter agents"
          value={filter.value}
          onInput={(event) => {
            filter.value = event.currentTarget.value;
            most.value = SHOWN;
          }}
        />
        {stale.length > 0 && (
          <Action
            class="small"
            confirm={`Rebuild ${stale.length} agents one after the other?`}
            run={async () => {
              for (const agent of stale) await hive.rebuild(agent.name);
              refresh("state");
            }}
          >
            {word("Update all")}
          </Action>
        )}
        {all.some(isRunning) && <StopAll class="small" />}
      </h2>
      <Many />
      {all.length === 0 ? (
        <Nothing title="There are no agents yet.">
          <p>Make one below, or with <code>hive-c0re spawn NAME</code>.</p>
        </Nothing>
      ) : (
        <div class="table-frame" tabIndex={0} role="region" aria-label="Table of agents">
          <table class="fleet">
            <thead>
              <tr>
                <th><span class="hidden">Choose</span></th>
                <Head column="name">Name</Head><Head column="state">State</Head><th>Status</th>
                <Head column="context">Context</Head><Head column="waiting">Waiting</Head><Head column="cost">Today</Head>
                <Head column="restarts">Restarts</Head><Head column="activity">Active</Head><th>Model</th><th><span class="hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>{found.value.slice(0, most.value).map((agent) => <Row key={agent.name} agent={agent} />)}</tbody>
          </table>
        </div>
      )}
      {all.length > 0 && found.value.length === 0 && <p class="dim">No agent matches “{filter.value}”.</p>}
      {found.value.length > most.value && (
        <button type="button" class="action" onClick={() => (most.value += SHOWN)}>
          Show more: {found.value.length - most.value} further agents
        </button>
      )}
    </section>
  );
}
