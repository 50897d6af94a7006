// Who this agent is and how it stands.

import type { ComponentChildren } from "preact";
import type { AgentSnapshot } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { ContextGauge, NoIsolation, StateBadge } from "../ui/badges.tsx";
import { LinkState } from "../ui/link-state.tsx";
import { Mark } from "../ui/mark.tsx";
import { Ago } from "../ui/time.tsx";
import type { AgentApi } from "./api.ts";

function time(at: string): string {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

interface Props {
  state: AgentSnapshot;
  api: AgentApi;
  isAlone: boolean;
  /** What else can be done to it. */
  controls?: ComponentChildren;
}

export function AgentHeader({ state, api, isAlone, controls }: Props) {
  const busy = state.turn_state !== "idle" && state.connected;
  return (
    <header class="agent-header">
      <div class="who">
        <Mark of={isAlone ? undefined : state.name} />
        <h1>{state.name}</h1>
        <StateBadge state={state.state} tool={state.current_tool} />
        {busy && state.turn_state_since !== null && <span class="dim">since <Ago at={state.turn_state_since} /></span>}
        {isAlone && state.rehearsed && (
          <span class="badge warn" title="A scripted model answers. No key is used and nothing is billed.">
            rehearsed model
          </span>
        )}
        <NoIsolation runtime={state.runtime} />
        {state.links.map((link) => (
          <a key={link.url} class="badge" href={link.url} title={link.url} target="_blank" rel="noopener noreferrer nofollow">{link.icon} {link.label}</a>
        ))}
        {state.own.map((name) => (
          <a key={name} class="badge" href={`http://${location.hostname}:${state.port}/own/${name}`} target="_blank" rel="noopener noreferrer">▣ {name}</a>
        ))}
        {isAlone && <LinkState />}
      </div>
      {state.status_text !== "" && <p class="status-text">{state.status_text}</p>}
      {state.note !== "" && <p class="status-text bad">{state.note}</p>}
      <div class="facts">
        <span title={`${state.engine} ${state.engine_version}`}>{state.model || "no model yet"}</span>
        <ContextGauge used={state.context_tokens} window={state.context_window_tokens} />
        <span>{state.unread + state.inflight} waiting</span>
        {state.state === "rate_limited" && (
          <span class="badge warn">
            ⊘ rate limited{state.resets_at === null ? "" : `, resets ${time(state.resets_at)}`}{" "}
            <Action run={() => api.lift()} done="The wait is lifted." class="small">Lift</Action>
          </span>
        )}
        {state.state !== "rate_limited" && state.held_until !== null && (
          <span class="badge warn">
            held until {time(state.held_until)}{" "}
            <Action run={() => api.lift()} done="The wait is lifted." class="small">Lift</Action>
          </span>
        )}
      </div>
      <div class="buttons">
        <Action run={() => api.interrupt()} disabled={!busy} title="Stop the running turn" done="The turn is being stopped.">Interrupt</Action>
        <Action run={() => api.compact()} disabled={!state.connected} done="Compacting." title="Summarise the session so far">Compact</Action>
        <Action
          run={() => api.newSession()}
          disabled={!state.connected}
          confirm="Let the next turn begin a session of its own? The agent then knows only its notes."
          done="The next turn begins a new session."
        >
          New session
        </Action>
        {controls}
      </div>
    </header>
  );
}
