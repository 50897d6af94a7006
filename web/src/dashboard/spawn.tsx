// A new agent.

import { useSignal } from "@preact/signals";
import { Action } from "../ui/action.tsx";
import { hive } from "./api.ts";
import { refresh } from "./store.ts";

export function SpawnForm() {
  const name = useSignal("");
  const model = useSignal("");
  return (
    <section class="panel" aria-label="New agent">
      <h2>New agent</h2>
      <div class="compose-to">
        <label>
          Name
          <input maxLength={9} placeholder="ada" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
        <label>
          Model
          <input placeholder="as in hive.toml" value={model.value} onInput={(event) => (model.value = event.currentTarget.value)} />
        </label>
        <Action
          class="primary"
          disabled={name.value === ""}
          done="It is starting."
          run={async () => {
            await hive.spawn(name.value, model.value.trim());
            name.value = "";
            refresh("agents", "info");
          }}
        >
          Spawn
        </Action>
      </div>
    </section>
  );
}
