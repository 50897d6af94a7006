// The engine's own login, driven from the page (T9).

import { useSignal } from "@preact/signals";
import { Action } from "../ui/action.tsx";
import { address } from "./address.ts";
import type { AgentApi } from "./api.ts";

export function Login({ api, lines }: { api: AgentApi; lines: string[] }) {
  const typed = useSignal("");
  const open = address(lines);
  const send = async (): Promise<void> => {
    await api.loginInput(typed.value);
    typed.value = "";
  };
  return (
    <section class="login" aria-label="Login">
      <h2>This agent needs a login</h2>
      <p>Its messages wait and run as soon as somebody has logged in. The credentials stay with this agent.</p>
      {lines.length > 0 && <pre class="login-lines">{lines.join("\n")}</pre>}
      <div class="buttons">
        <Action run={() => api.loginStart()} class="primary" title="Starts the engine's own login">Start login</Action>
        {open !== undefined && <a class="action" href={open.href} target="_blank" rel="noopener noreferrer">Open {open.host}</a>}
        <Action run={() => api.loginCancel()}>Cancel</Action>
      </div>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          event.currentTarget.querySelector("button")?.click();
        }}
      >
        <label>
          Answer or code
          <input
            type="password"
            autocomplete="off"
            value={typed.value}
            onInput={(event) => (typed.value = event.currentTarget.value)}
          />
        </label>
        <Action run={send} disabled={typed.value === ""}>Enter</Action>
      </form>
    </section>
  );
}
