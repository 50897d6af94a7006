// One agent, live: who it is, what it does, and a box to write to it.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { ApiError } from "../api/client.ts";
import type { Feed } from "../api/feed.ts";
import { TranscriptView } from "../transcript/view.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { AgentApi } from "./api.ts";
import { Composer } from "./composer.tsx";
import { Files } from "./files.tsx";
import { AgentHeader } from "./header.tsx";
import { Live } from "./live.ts";
import { Login } from "./login.tsx";
import { AgentStats } from "./stats.tsx";
import { Tasks } from "./tasks.tsx";

const TABS = ["live", "tasks", "notes", "statistics"] as const;
type Tab = (typeof TABS)[number];

interface Props {
  feed: Feed;
  base: string;
  /** The agent, on a page that has others besides. */
  name?: string;
  /** The event to show first, such as `e123`. */
  event?: string | undefined;
  /** Further buttons, of a page that may do more. */
  controls?: ComponentChildren;
}

function Trouble({ error }: { error: unknown }) {
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Nothing title={error.message}>
        <p>It may have been destroyed. Its messages are still there. <a href="#/">Back to the overview</a></p>
      </Nothing>
    );
  }
  return (
    <Nothing title="The host does not answer.">
      <p>Is the daemon running? <button type="button" class="action" onClick={() => location.reload()}>Try again</button></p>
    </Nothing>
  );
}

export function AgentPage({ feed, base, name, event, controls }: Props) {
  const api = useMemo(() => new AgentApi(base), [base]);
  const live = useMemo(() => new Live(api, feed, name), [api]);
  const wanted = /^e\d+/.test(event ?? "") ? event : undefined;
  const tab = useSignal<Tab>("live");
  useEffect(() => live.start(), [live]);
  const seq = Number(/^e(\d+)/.exec(wanted ?? "")?.[1]);
  useEffect(() => {
    if (!Number.isNaN(seq)) void live.reach(seq);
  }, [live, seq, live.earlier.value === "some"]);

  const now = live.state.value;
  useEffect(() => {
    if (now !== undefined) document.title = `${now.name} · ${now.state.replace("_", " ")}`;
  }, [now?.name, now?.state]);
  if (now === undefined) {
    return <main class="agent-page">{live.problem.value === undefined ? <Nothing title="Loading …" /> : <Trouble error={live.problem.value} />}</main>;
  }
  const idle = now.state === "stopped" || now.state === "failed";
  return (
    <main class="agent-page" id="content" tabIndex={-1}>
      <AgentHeader state={now} api={api} isAlone={name === undefined} controls={controls} />
      <div class="tabs" role="tablist" aria-label={`About ${now.name}`}>
        {TABS.map((one) => (
          <button key={one} type="button" role="tab" id={`tab-${one}`} aria-selected={tab.value === one} aria-controls="tab-panel" class="quiet" onClick={() => (tab.value = one)}>
            {one}
          </button>
        ))}
      </div>
      {now.state === "needs_login" && <Login api={api} lines={live.login.value} />}
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} class={tab.value === "live" ? "panel-live" : "panel-scroll"}>
        {tab.value === "live" && (
          <TranscriptView
            transcript={live.transcript}
            version={live.version}
            earlier={live.earlier}
            load={() => live.more()}
            link={(id) => (name === undefined ? `#/${id}` : `#/agent/${now.name}/${id}`)}
            wanted={wanted}
            empty={idle ? "The agent does not run. Its mail waits; start it on the overview." : "Send this agent a message below, and watch what it does here."}
          />
        )}
        {tab.value === "tasks" && <Tasks api={api} />}
        {tab.value === "notes" && <Files api={api} />}
        {tab.value === "statistics" && <AgentStats api={api} />}
      </div>
      <Composer api={api} name={now.name} />
    </main>
  );
}
