// A message to any agent.

import { useSignal } from "@preact/signals";
import { Action } from "../ui/action.tsx";
import { hive } from "./api.ts";
import { agents } from "./store.ts";

export function SendForm() {
  const to = useSignal("");
  const body = useSignal("");
  return (
    <section class="panel" aria-label="Send a message">
      <h2>Send a message</h2>
      <div class="compose-to">
        <label>
          To
          <input list="names" value={to.value} onInput={(event) => (to.value = event.currentTarget.value)} />
        </label>
        <datalist id="names">{(agents.value ?? []).map((agent) => <option key={agent.name} value={agent.name} />)}</datalist>
        <label>
          Message
          <textarea rows={2} value={body.value} onInput={(event) => (body.value = event.currentTarget.value)} />
        </label>
        <Action
          class="primary"
          disabled={to.value.trim() === "" || body.value.trim() === ""}
          done="Sent: it is on disk."
          run={async () => {
            await hive.send(to.value.trim(), body.value);
            body.value = "";
          }}
        >
          Send
        </Action>
      </div>
    </section>
  );
}
