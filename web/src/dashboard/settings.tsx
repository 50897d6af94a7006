// What the viewer chose, who tells them of news, and the switches of the whole hive.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../api/client.ts";
import type { NotifierState } from "../api/types.ts";
import { leave } from "../session.ts";
import { Action } from "../ui/action.tsx";
import { colours, spelling } from "../ui/settings.ts";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { StopAll } from "./stop-all.tsx";
import { info, refresh } from "./store.ts";

function Looks() {
  return (
    <section class="panel" aria-label="Looks">
      <h2>Looks</h2>
      <label>
        Colours{" "}
        <select value={colours.value} onChange={(event) => (colours.value = event.currentTarget.value as typeof colours.value)}>
          <option value="auto">as the system</option><option value="dark">dark</option><option value="light">light</option>
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={spelling.value === "leet"}
          onChange={(event) => (spelling.value = event.currentTarget.checked ? "leet" : "plain")}
        />{" "}
        Spell buttons like the original
      </label>
    </section>
  );
}

function Notifications() {
  const found = useSignal<NotifierState | undefined>(undefined);
  const load = (): Promise<void> => get<NotifierState>("/api/notifier").then((now) => void (found.value = now));
  useEffect(() => void load().catch(complain), []);
  const now = found.value;
  return (
    <section class="panel" aria-label="Notifications">
      <h2>Notifications</h2>
      {now === undefined ? <p class="dim">Loading …</p> : !now.is_on ? (
        <p>
          The hive tells nobody when something waits for you. Set <code>notify.url</code> in <code>hive.toml</code> to a
          webhook or an ntfy topic and restart the daemon; docs/web-ui.md has an example.
        </p>
      ) : (
        <>
          <p>
            New items go to {now.kind} at <code>{now.host}</code>, {now.content ? "with what they say" : "without what they say"}, at most
            one message in {now.min_interval_secs} s{now.quiet_hours === null ? "" : `, silent ${now.quiet_hours}`}. {now.sent} sent since the start.
          </p>
          {now.last_error !== null && <p class="refusal" role="alert">The last one did not arrive: {now.last_error}</p>}
          <div class="buttons"><Action done="It was taken." run={() => post("/api/notifier/test").finally(() => void load().catch(complain))}>Send a test</Action></div>
        </>
      )}
    </section>
  );
}

function WholeHive() {
  const then = (): void => refresh("state");
  return (
    <section class="panel" aria-label="The whole hive">
      <h2>The whole hive</h2>
      <p class="dim">hyperhive {info.value?.version}{info.value?.hive ? `, hive ${info.value.hive}` : ""}, in {info.value?.root}</p>
      <p>
        <b>Pause</b> lets running turns end and begins no more; mail waits. <b>Emergency stop</b> ends every agent at once,
        in the middle of its turn; nothing is lost, and each can be started again on the overview.
      </p>
      <div class="buttons">
        <Action run={() => hive.pause().then(then)} done="No further turn begins." title="Running turns end first; mail waits">Pause all</Action>
        <Action run={() => hive.resume().then(then)} done="Turns begin again.">Resume all</Action>
        <StopAll />
      </div>
      <div class="buttons">
        <Action confirm="Sign this browser out?" run={() => post("/api/logout").finally(() => leave("You signed out."))}>Sign out</Action>
      </div>
    </section>
  );
}

export function Settings() {
  return (
    <>
      <Looks />
      <Notifications />
      <WholeHive />
    </>
  );
}
