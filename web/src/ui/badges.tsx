// States as word, sign and colour: none of them alone.

import type { AgentRow, AgentState } from "../api/types.ts";
import { Action } from "./action.tsx";
import { known } from "./known.ts";
import { word } from "./settings.ts";
import { Ago } from "./time.tsx";

const SIGNS: Record<AgentState, [sign: string, words: string, tone: string]> = {
  external: ["◌", "external", "plain"],
  starting: ["◔", "starting", "busy"],
  idle: ["●", "idle", "good"],
  thinking: ["◆", "thinking", "busy"],
  compacting: ["⇲", "compacting", "busy"],
  rate_limited: ["⊘", "rate limited", "warn"],
  needs_login: ["⚿", "needs login", "warn"],
  paused: ["‖", "paused", "warn"],
  stopped: ["○", "stopped", "plain"],
  failed: ["✗", "failed", "bad"],
};

export function StateBadge({ state, tool }: { state: AgentState; tool?: string | null | undefined }) {
  const [sign, words, tone] = known(SIGNS, state) ?? ["?", state, "plain"];
  return (
    <span class={`badge ${tone}`} data-state={state}>
      <span aria-hidden="true">{sign}</span> {words}
      {tool ? <span class="tool"> · {tool}</span> : null}
    </span>
  );
}

export function NoIsolation({ runtime }: { runtime: string }) {
  if (runtime !== "process") return null;
  return (
    <span class="badge warn" title="It runs as a plain process: it can read what the hive's own user can.">
      no isolation
    </span>
  );
}

export function HostNetwork({ runtime, network }: { runtime: string; network?: string | null | undefined }) {
  if (network !== "host" || runtime === "process") return null;
  return (
    <span class="badge warn" title="It is on the host's network: it reaches this machine's own services.">
      host network
    </span>
  );
}

/** A wait for a usage limit that somebody else on the same credential met. */
export function Held({ until }: { until: string | null }) {
  if (until === null || Date.parse(until) < Date.now()) return null;
  return <span class="badge warn">held until {new Date(until).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}</span>;
}

/** The badge of an agent that runs an older build is itself the button that renews it. */
export function Stale({ agent, rebuild }: { agent: AgentRow; rebuild: () => Promise<unknown> }) {
  if (agent.stale !== true) return null;
  return (
    <Action run={rebuild} class="badge warn small" title="It was built by another version of the hive" done={`${agent.name} is rebuilt.`}>
      stale · {word("Rebuild")}
    </Action>
  );
}

/** How often it ended by itself and was started again; a start that somebody asks for begins anew. */
export function Restarts({ agent }: { agent: AgentRow }) {
  const count = agent.restarts ?? 0;
  if (agent.runtime === "none") return null;
  if (count === 0) return <span class="dim none">0</span>;
  return (
    <span title={`It ended by itself and was started again ${count === 1 ? "once" : `${count} times`} since somebody started it.`}>
      <span class="badge warn"><span aria-hidden="true">↻</span> {count}</span>
      {agent.restarted_at && <span class="dim"><Ago at={agent.restarted_at} /></span>}
    </span>
  );
}

export function ContextGauge({ used, window }: { used: number; window: number }) {
  if (window <= 0) return null;
  const percent = Math.min(100, Math.round((used / window) * 100));
  return (
    <span class="gauge" title={`${used.toLocaleString()} of ${window.toLocaleString()} tokens`}>
      <meter min={0} max={100} high={75} optimum={0} value={percent} aria-label="context" />
      {percent}%
    </span>
  );
}
