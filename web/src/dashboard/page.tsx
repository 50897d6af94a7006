// The operator's page: where to go, what needs them, who is there.

import { useEffect } from "preact/hooks";
import { AgentPage } from "../agent/page.tsx";
import { Action } from "../ui/action.tsx";
import { LinkState } from "../ui/link-state.tsx";
import { Palette } from "../ui/palette.tsx";
import { colours, spelling } from "../ui/settings.ts";
import { hive } from "./api.ts";
import { Attention } from "./attention.tsx";
import { Fleet } from "./fleet.tsx";
import { Flow } from "./flow.tsx";
import { Log } from "./log.tsx";
import { route } from "./route.ts";
import { SpawnForm } from "./spawn.tsx";
import { Stats } from "./stats.tsx";
import { agents, info, refresh, rehearsed, waiting, watch } from "./store.ts";

const PLACES = [
  { path: "", name: "Overview" },
  { path: "messages", name: "Messages" },
  { path: "stats", name: "Statistics" },
  { path: "log", name: "Log" },
  { path: "settings", name: "Settings" },
];

function Settings() {
  return (
    <section class="panel" aria-label="Settings">
      <h2>Settings</h2>
      <label>
        Colours{" "}
        <select value={colours.value} onChange={(event) => (colours.value = event.currentTarget.value as typeof colours.value)}>
          <option value="auto">as the system</option><option value="dark">dark</option><option value="light">light</option>
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={spelling.value === "leet"}
          onChange={(event) => (spelling.value = event.currentTarget.checked ? "leet" : "plain")}
        />{" "}
        Spell buttons like the original
      </label>
      <p class="dim">hyperhive {info.value?.version}{info.value?.hive ? `, hive ${info.value.hive}` : ""}</p>
      <Action
        class="danger"
        confirm="Stop every agent now? Their mail waits, and running turns are given back."
        done="All agents are stopped."
        run={() => hive.stopAll().then(() => refresh("agents"))}
      >
        Stop all agents
      </Action>
    </section>
  );
}

function Place({ path }: { path: string }) {
  switch (path) {
    case "messages":
      return <Flow />;
    case "stats":
      return <Stats />;
    case "log":
      return <Log />;
    case "settings":
      return <Settings />;
    default:
      return (
        <>
          <Attention />
          <Fleet />
          <SpawnForm />
        </>
      );
  }
}

export function Dashboard() {
  useEffect(watch, []);
  const path = route.value;
  const agent = path.startsWith("agent/") ? path.slice("agent/".length) : undefined;
  if (agent === undefined) document.title = waiting.value > 0 ? `(${waiting.value}) hyperhive` : "hyperhive";
  const choices = [
    ...PLACES.map((place) => ({ label: place.name, go: () => (location.hash = `#/${place.path}`) })),
    ...(agents.value ?? []).map((row) => ({ label: `Agent ${row.name}`, go: () => (location.hash = `#/agent/${row.name}`) })),
  ];
  return (
    <div class={agent === undefined ? "" : "with-agent"}>
      <div class="dashboard">
        <div class="top">
          <h1>{info.value?.hive ?? "hyperhive"}</h1>
          <nav aria-label="Pages">
            {PLACES.map((place) => (
              <a key={place.path} href={`#/${place.path}`} aria-current={place.path === path ? "page" : undefined}>
                {place.name}
                {place.path === "" && waiting.value > 0 && ` (${waiting.value})`}
              </a>
            ))}
          </nav>
          <div class="right">
            {rehearsed.value && <span class="badge warn" title="A scripted model answers. No key is used and nothing is billed.">rehearsed model</span>}
            <LinkState />
          </div>
        </div>
        {agent === undefined && <Place path={path} />}
      </div>
      {agent !== undefined && (
        <div class="agent-frame">
          <AgentPage key={agent} base={`/api/agents/${encodeURIComponent(agent)}`} />
        </div>
      )}
      <Palette choices={choices} />
    </div>
  );
}
