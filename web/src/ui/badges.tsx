// States as word, sign and colour: none of them alone.

import type { AgentState } from "../api/types.ts";

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
  const [sign, words, tone] = SIGNS[state] ?? ["?", state, "plain"];
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

export function HostNetwork({ runtime, network }: { runtime: string; network?: string | undefined }) {
  if (network !== "host" || runtime === "process") return null;
  return (
    <span class="badge warn" title="It is on the host's network: it reaches this machine's own services.">
      host network
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
