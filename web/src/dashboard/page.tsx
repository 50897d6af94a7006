// The operator's page: where to go, what needs them, who is there.

import { useEffect } from "preact/hooks";
import { AgentPage } from "../agent/page.tsx";
import { Action } from "../ui/action.tsx";
import { LinkState } from "../ui/link-state.tsx";
import { Palette } from "../ui/palette.tsx";
import { hive } from "./api.ts";
import { AgentButtons } from "./agent-buttons.tsx";
import { Attention } from "./attention.tsx";
import { Decisions } from "./decisions.tsx";
import { Fleet } from "./fleet.tsx";
import { Flow } from "./flow.tsx";
import { Log } from "./log.tsx";
import { Permissions } from "./permissions.tsx";
import { route } from "../ui/route.ts";
import { word } from "../ui/settings.ts";
import { Schedules } from "./schedules.tsx";
import { Settings } from "./settings.tsx";
import { SpawnForm } from "./spawn.tsx";
import { Stats } from "./stats.tsx";
import { complain } from "../ui/toasts.tsx";
import { agents, feed, info, refresh, rehearsed, waiting, watch } from "./store.ts";

const PLACES = [
  { path: "", name: "Overview" },
  { path: "messages", name: "Messages" },
  { path: "decisions", name: "Decisions" },
  { path: "permissions", name: "Permissions" },
  { path: "schedules", name: "Schedules" },
  { path: "stats", name: "Statistics" },
  { path: "log", name: "Log" },
  { path: "settings", name: "Settings" },
];

function Place({ path }: { path: string }) {
  switch (path.split("/")[0]) {
    case "messages":
    case "thread":
      return <Flow />;
    case "decisions":
      return <Decisions />;
    case "permissions":
      return <Permissions />;
    case "schedules":
      return <Schedules />;
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

/** The number of waiting items, where one sees it from another tab. */
function Signs({ agent }: { agent: boolean }) {
  const count = waiting.value;
  useEffect(() => {
    if (!agent) document.title = count > 0 ? `(${count}) ${info.value?.hive ?? "hyperhive"}` : (info.value?.hive ?? "hyperhive");
    document.querySelector("link[rel='icon']")?.setAttribute("href", count > 0 ? `/icon?n=${Math.min(count, 99)}` : "/icon");
  }, [count, agent, info.value?.hive]);
  return null;
}

/** Everything stands still, and the reader must know: the fleet's state is not hidden in its rows. */
function Standstill() {
  const why = info.value?.paused;
  if (why === undefined || why === null) return null;
  return (
    <p class="banner" role="status">
      The hive is paused{why === "" ? "" : ` (${why})`}: no turn begins. <Action class="small" run={() => hive.resume().then(() => refresh("state"))}>Resume all</Action>
    </p>
  );
}

function here(place: string, path: string): boolean {
  return place === path || (place === "" && path.startsWith("item/")) || (place === "messages" && path.startsWith("thread/"));
}

export function Dashboard() {
  useEffect(watch, []);
  const path = route.value;
  const [place, agentName, event] = path.split("/");
  const agent = place === "agent" ? agentName : undefined;
  // On a narrow screen the pages are a row to push; the one that is open is in view.
  useEffect(() => {
    const open = document.querySelector(".top nav [aria-current=page]") ?? document.querySelector(".top nav a");
    open?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [path]);
  const row = agents.value?.find((one) => one.name === agent);
  const choices = [
    ...PLACES.map((place) => ({ label: place.name, go: () => (location.hash = `#/${place.path}`) })),
    ...(agents.value ?? []).map(({ name }) => ({ label: `Agent ${name}`, go: () => (location.hash = `#/agent/${name}`) })),
    { label: "Pause all", go: () => void hive.pause().then(() => refresh("state"), complain) },
    { label: "Resume all", go: () => void hive.resume().then(() => refresh("state"), complain) },
    { label: "Emergency stop …", go: () => (location.hash = "#/settings") }, // It asks first.
  ];
  return (
    <div class={agent === undefined ? "" : "with-agent"}>
      <Signs agent={agent !== undefined} />
      <div class="dashboard">
        <header class="top">
          <a class="hidden skip" href="#content" onClick={(event) => {
            event.preventDefault();
            document.getElementById("content")?.focus();
          }}>Skip to the content</a>
          {agent === undefined ? <h1>{info.value?.hive ?? "hyperhive"}</h1> : <p class="hive-name">{info.value?.hive ?? "hyperhive"}</p>}
          <nav aria-label="Pages">
            {PLACES.map((place) => (
              <a key={place.path} href={`#/${place.path}`} aria-current={here(place.path, path) ? "page" : undefined}>
                {word(place.name)}
                {place.path === "" && waiting.value > 0 && ` (${waiting.value})`}
              </a>
            ))}
          </nav>
          <div class="right">
            {rehearsed.value && <span class="badge warn" title="A scripted model answers. No key is used and nothing is billed.">rehearsed model</span>}
            <LinkState />
          </div>
        </header>
        <Standstill />
        {agent === undefined && <main id="content" tabIndex={-1} class="place"><Place path={path} /></main>}
      </div>
      {agent !== undefined && (
        <div class="agent-frame">
          <AgentPage
            key={agent}
            feed={feed}
            name={agent}
            event={event}
            base={`/api/agents/${encodeURIComponent(agent)}`}
            controls={row !== undefined && <AgentButtons agent={row} />}
          />
        </div>
      )}
      <Palette choices={choices} />
    </div>
  );
}
