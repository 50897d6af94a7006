// A new agent.

import { useSignal } from "@preact/signals";
import { Action } from "../ui/action.tsx";
import { word } from "../ui/settings.ts";
import { hive } from "./api.ts";
import { agents, refresh } from "./store.ts";

export function SpawnForm() {
  const name = useSignal("");
  const model = useSignal("");
  const parent = useSignal("");
  const clear = (): void => {
    name.value = "";
    refresh("state", "approvals");
  };
  return (
    <section class="panel" aria-label="New agent">
      <h2>New agent</h2>
      <div class="compose-to fields">
        <label>
          Name
          <input maxLength={9} placeholder="ada" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </label>
        <label>
          Model
          <input placeholder="as in hive.toml" value={model.value} onInput={(event) => (model.value = event.currentTarget.value)} />
        </label>
        <label>
          Parent
          <select value={parent.value} onChange={(event) => (parent.value = event.currentTarget.value)}>
            <option value="">none: answers to you</option>
            {(agents.value ?? []).map((agent) => <option key={agent.name} value={agent.name}>{agent.name}</option>)}
          </select>
        </label>
      </div>
      <div class="buttons">
        <Action class="primary" disabled={name.value === ""} done="It is starting." run={() => hive.spawn(name.value, model.value.trim(), parent.value).then(clear)}>
          {word("Spawn")}
        </Action>
        <Action disabled={name.value === ""} done="It waits for your approval above." title="Shows what would be made first" run={() => hive.requestSpawn(name.value, model.value.trim(), "").then(clear)}>
          {word("Request spawn")}
        </Action>
        <span class="dim">Spawn starts it at once; a request first shows you what would be made.</span>
      </div>
    </section>
  );
}
