// Who this agent is and how it stands.

import type { AgentSnapshot } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { ContextGauge, StateBadge } from "../ui/badges.tsx";
import { LinkState } from "../ui/link-state.tsx";
import { Ago } from "../ui/time.tsx";
import type { AgentApi } from "./api.ts";

export function AgentHeader({ state, api }: { state: AgentSnapshot; api: AgentApi }) {
  const busy = state.turn_state !== "idle";
  return (
    <header class="agent-header">
      <div class="who">
        <h1>{state.name}</h1>
        <StateBadge state={state.state} tool={state.current_tool} />
        {busy && state.turn_state_since !== null && <span class="dim">since <Ago at={state.turn_state_since} /></span>}
        {state.rehearsed && (
          <span class="badge warn" title="A scripted model answers. No key is used and nothing is billed.">
            rehearsed model
          </span>
        )}
        <LinkState />
      </div>
      {state.status_text !== "" && <p class="status-text">{state.status_text}</p>}
      <div class="facts">
        <span title={`${state.engine} ${state.engine_version}`}>{state.model || "no model yet"}</span>
        <ContextGauge used={state.context_tokens} window={state.context_window_tokens} />
        <span>{state.unread} waiting</span>
        {state.held_until !== null && (
          <span class="badge warn">
            held until {new Date(state.held_until).toLocaleTimeString()}{" "}
            <Action run={() => api.lift()} done="The wait is lifted." class="small">Lift</Action>
          </span>
        )}
      </div>
      <div class="buttons">
        <Action run={() => api.interrupt()} disabled={!busy} title="Stop the running turn">Interrupt</Action>
        <Action run={() => api.compact()} done="Compacting." title="Summarise the session so far">Compact</Action>
        <Action
          run={() => api.newSession()}
          confirm="Let the next turn begin a session of its own? The agent then knows only its notes."
          done="The next turn begins a new session."
        >
          New session
        </Action>
      </div>
    </header>
  );
}
