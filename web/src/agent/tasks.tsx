// Background commands of an agent, with the end of what they write, live while it is looked at.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { isLong, oneLine } from "../transcript/headlines.ts";
import { known } from "../ui/known.ts";
import { Nothing } from "../ui/nothing.tsx";
import { Terminal } from "../ui/rich.tsx";
import { Ago, span } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import type { AgentApi, TaskRow } from "./api.ts";

/** How often a list or a tail that somebody looks at is asked for. */
const AGAIN = 1_500;
/** The most text of a tail that is on the page. */
const MOST = 60_000;

function Tail({ api, task, stream }: { api: AgentApi; task: TaskRow; stream: "out" | "err" }) {
  const text = useSignal("");
  useEffect(() => {
    let from: number | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    const look = async (): Promise<void> => {
      try {
        const piece = await api.tail(task.id, stream, from);
        if (ended) return;
        if (piece.text !== "") text.value = (text.value + piece.text).slice(-MOST);
        from = piece.next;
      } catch {
        // There may be no such stream yet.
      }
      if (!ended && task.state === "running") timer = setTimeout(() => void look(), AGAIN);
    };
    void look();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [api, task.id, task.state, stream]);
  if (text.value === "") return null;
  return (
    <div class="tail" tabIndex={0} role="region" aria-label={`What task ${task.id} wrote to std${stream}`}>
      <p class="dim">std{stream}</p>
      <Terminal text={text.value} />
    </div>
  );
}

/** Whether it ended otherwise than it should have. */
function hasFailed(task: TaskRow): boolean {
  return task.state !== "running" && task.state !== "pending" && task.exit_code !== 0;
}

const SIGNS: Record<string, string> = { running: "◆", pending: "◔", done: "✓", timed_out: "⊘", interrupted: "✗" };

function outcome(task: TaskRow): string {
  if (task.exit_code !== null) return `exit code ${task.exit_code}`;
  if (task.signal !== null) return `signal ${task.signal}`;
  return task.state.replace("_", " ");
}

export function Tasks({ api }: { api: AgentApi }) {
  const tasks = useSignal<TaskRow[] | undefined>(undefined);
  const opened = useSignal<number | undefined>(undefined);
  useEffect(() => {
    const load = (): void => {
      if (!document.hidden) api.tasks().then((list) => (tasks.value = list.tasks), tasks.value === undefined ? complain : () => undefined);
    };
    load();
    const timer = setInterval(load, AGAIN);
    return () => clearInterval(timer);
  }, [api]);
  const all = tasks.value;
  if (all === undefined) return <Nothing title="Loading …" />;
  if (all.length === 0) {
    return <Nothing title="No background commands."><p>What the agent runs with its bash tool appears here.</p></Nothing>;
  }
  return (
    <ul class="cards">
      {all.map((task) => (
        <li key={task.id} class={hasFailed(task) ? "card bad" : "card settled"}>
          <button type="button" class="quiet task" aria-expanded={opened.value === task.id} onClick={() => (opened.value = opened.value === task.id ? undefined : task.id)}>
            <span aria-hidden="true">{task.state === "done" && hasFailed(task) ? "✗" : (known(SIGNS, task.state) ?? "?")}</span> <b>#{task.id}</b> <code>{oneLine(task.cmd)}</code>
          </button>
          <p class="dim">
            {outcome(task)}
            {task.duration_ms !== null && `, ${span(task.duration_ms)}`}
            {task.created_at !== null && <>, <Ago at={task.created_at} /></>}
            {task.note !== null && ` — ${task.note}`}
          </p>
          {opened.value === task.id && (
            <>
              {isLong(task.cmd) && <pre>{task.cmd}</pre>}
              <Tail api={api} task={task} stream="out" />
              <Tail api={api} task={task} stream="err" />
            </>
          )}
        </li>
      ))}
    </ul>
  );
}
