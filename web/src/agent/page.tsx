// One agent, live: who it is, what it does, and a box to write to it.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { follow } from "../api/stream.ts";
import type { AgentSnapshot, EventRow } from "../api/types.ts";
import { leave } from "../session.ts";
import { Transcript } from "../transcript/rows.ts";
import { TranscriptView } from "../transcript/view.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { complain } from "../ui/toasts.tsx";
import { AgentApi } from "./api.ts";
import { Composer } from "./composer.tsx";
import { AgentHeader } from "./header.tsx";
import { Login } from "./login.tsx";

/** Events after which the agent stands differently. */
const TELLING = new Set(["turn_start", "turn_end", "state", "message_stored", "message_acked", "status_set"]);
const LOGIN_LINES = 30;

export function AgentPage({ base }: { base: string }) {
  const api = useMemo(() => new AgentApi(base), [base]);
  const transcript = useMemo(() => new Transcript(), [base]);
  const version = useSignal(0);
  const state = useSignal<AgentSnapshot | undefined>(undefined);
  const login = useSignal<string[]>([]);

  useEffect(() => {
    let waiting = false;
    let painted = 0;
    const refresh = (): void => {
      if (waiting) return;
      waiting = true;
      setTimeout(() => {
        waiting = false;
        api.state().then((now) => (state.value = now), complain);
      }, 100);
    };
    const paint = (): void => {
      if (painted === 0) {
        painted = requestAnimationFrame(() => {
          painted = 0;
          version.value = transcript.version;
        });
      }
    };
    return follow(api.events(), {
      live: refresh,
      refused: () => leave("The token is not good any more."),
      event: ({ kind, data }) => {
        if (kind === "gap") {
          transcript.add({ seq: Date.now(), at: new Date().toISOString(), about: "", kind: "gap", data: {} });
          paint();
          return;
        }
        const row = JSON.parse(data) as EventRow;
        transcript.add(row);
        if (row.kind === "login") login.value = [...login.value, String(row.data.text ?? "")].slice(-LOGIN_LINES);
        if (TELLING.has(row.kind)) refresh();
        paint();
      },
    });
  }, [api]);

  const now = state.value;
  if (now === undefined) return <Nothing title="Loading …" />;
  document.title = `${now.name} · ${now.state.replace("_", " ")}`;
  return (
    <main class="agent-page">
      <AgentHeader state={now} api={api} />
      {now.state === "needs_login" && <Login api={api} lines={login.value} />}
      <TranscriptView transcript={transcript} version={version} />
      <Composer api={api} name={now.name} />
    </main>
  );
}
