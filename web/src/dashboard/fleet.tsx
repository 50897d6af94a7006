// The agents, one row each, with the buttons that fit their state.

import { useSignal } from "@preact/signals";
import type { AgentRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { HostNetwork, NoIsolation, StateBadge } from "../ui/badges.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { word } from "../ui/settings.ts";
import { hive } from "./api.ts";
import { agents, refresh } from "./store.ts";

const RUNNING = new Set(["idle", "thinking", "compacting", "rate_limited", "needs_login", "starting"]);

function Buttons({ agent }: { agent: AgentRow }) {
  if (agent.state === "external") return null;
  const then = (): void => refresh("agents");
  return RUNNING.has(agent.state) ? (
    <div class="buttons">
      <Action run={() => hive.restart(agent.name).then(then)} class="small">{word("Restart")}</Action>
      <Action run={() => hive.stop(agent.name).then(then)} confirm={`Stop ${agent.name}? Its mail waits.`} class="small">
        {word("Stop")}
      </Action>
    </div>
  ) : (
    <div class="buttons">
      <Action run={() => hive.start(agent.name).then(then)} class="small primary">{word("Start")}</Action>
      <Action
        run={() => hive.destroy(agent.name).then(then)}
        confirm={`Destroy ${agent.name}? Its state and login stay on disk, and spawning it again finds them.`}
        class="small danger"
      >
        {word("Destroy")}
      </Action>
    </div>
  );
}

export function Fleet() {
  const filter = useSignal("");
  const all = agents.value;
  if (all === undefined) return <Nothing title="Loading the agents …" />;
  const shown = all.filter((agent) => `${agent.name} ${agent.state} ${agent.status}`.includes(filter.value));
  return (
    <section class="panel" aria-label="Agents">
      <h2>
        Agents <span class="dim">{all.length}</span>
        {all.length > 5 && (
          <input
            id="filter"
            placeholder="/ filter"
            aria-label="Filter agents"
            value={filter.value}
            onInput={(event) => (filter.value = event.currentTarget.value)}
          />
        )}
      </h2>
      {all.length === 0 ? (
        <Nothing title="There are no agents yet.">
          <p>Make one below, or with <code>hive-c0re spawn NAME</code>.</p>
        </Nothing>
      ) : (
        <div class="table-frame">
          <table class="fleet">
            <thead>
              <tr><th>Name</th><th>State</th><th>Status</th><th>Waiting</th><th>Model</th><th>Runs in</th><th /></tr>
            </thead>
            <tbody>
              {shown.map((agent) => (
                <tr key={agent.name}>
                  <td class="data"><a href={`#/agent/${agent.name}`}>{agent.name}</a></td>
                  <td><StateBadge state={agent.state} /></td>
                  <td>{agent.status || <span class="dim">{agent.note ?? ""}</span>}</td>
                  <td class="data">{agent.unread}</td>
                  <td class="data">{agent.model}</td>
                  <td>{agent.runtime} <NoIsolation runtime={agent.runtime} /> <HostNetwork runtime={agent.runtime} network={agent.network} /></td>
                  <td><Buttons agent={agent} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
