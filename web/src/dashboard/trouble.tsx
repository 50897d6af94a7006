// An agent that cannot go on by itself.

import type { AgentRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { hive } from "./api.ts";
import { refresh } from "./store.ts";

export function TroubleCard({ agent }: { agent: AgentRow }) {
  const failed = agent.state === "failed";
  return (
    <>
      <p>
        <b>{agent.name}</b> {failed ? "failed" : "needs a login"}
        {agent.note ? `: ${agent.note}` : ""}
      </p>
      <div class="buttons">
        {failed && (
          <Action key="start" shortcut="a" run={() => hive.start(agent.name).then(() => refresh("state"))} class="primary">Start it again</Action>
        )}
        <a class="action" href={`#/agent/${agent.name}`}>{failed ? `See what ${agent.name} did` : `Log ${agent.name} in`}</a>
      </div>
    </>
  );
}
