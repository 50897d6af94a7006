// The switch that ends every agent at once.

import { Action } from "../ui/action.tsx";
import { word } from "../ui/settings.ts";
import { hive } from "./api.ts";
import { refresh } from "./store.ts";

export function StopAll({ class: kind = "" }: { class?: string }) {
  return (
    <Action
      class={`danger ${kind}`}
      title="Ends every agent now, in the middle of its turn; nothing is lost"
      confirm="Stop every agent now? Their mail waits, and running turns are given back."
      done="All agents are stopped."
      run={() => hive.stopAll().then(() => refresh("state"))}
    >
      {word("Emergency stop")}
    </Action>
  );
}
