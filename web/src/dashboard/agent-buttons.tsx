// The buttons that fit an agent's state.

import type { AgentRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { word } from "../ui/settings.ts";
import { hive } from "./api.ts";
import { refresh, rootAgent } from "./store.ts";

const RUNNING = new Set(["idle", "thinking", "compacting", "rate_limited", "needs_login", "starting", "paused"]);

/** Whether there is something to stop. */
export function isRunning(agent: AgentRow): boolean {
  return RUNNING.has(agent.state);
}

export function AgentButtons({ agent }: { agent: AgentRow }) {
  const then = (): void => refresh("state");
  const { name, state } = agent;
  const isRoot = name === rootAgent.value;
  if (state === "external") {
    return (
      <div class="buttons">
        <Action run={() => hive.destroy(name).then(then)} confirm={`Destroy ${name}? Its mail and state stay on disk.`} class="small danger">{word("Destroy")}</Action>
      </div>
    );
  }
  if (!isRunning(agent)) {
    return (
      <div class="buttons">
        <Action run={() => hive.start(name).then(then)} class="small primary">{word("Start")}</Action>
        <Action run={() => hive.rebuild(name).then(then)} class="small">{word("Rebuild")}</Action>
        {!isRoot && (
          <Action
            run={() => hive.destroy(name).then(then)}
            confirm={`Destroy ${name}? Its state and login stay on disk, and spawning it again finds them.`}
            class="small danger"
          >
            {word("Destroy")}
          </Action>
        )}
      </div>
    );
  }
  return (
    <div class="buttons">
      {state === "paused" ? (
        <Action run={() => hive.resume(name).then(then)} class="small primary">{word("Resume")}</Action>
      ) : (
        <Action run={() => hive.pause(name).then(then)} class="small" title="No further turn begins; a running one ends first">{word("Pause")}</Action>
      )}
      <Action run={() => hive.restart(name).then(then)} class="small">{word("Restart")}</Action>
      {!isRoot && (
        <Action run={() => hive.stop(name).then(then)} confirm={`Stop ${name}? Its mail waits.`} class="small">{word("Stop")}</Action>
      )}
    </div>
  );
}
