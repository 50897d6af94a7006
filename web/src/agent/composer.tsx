// Where the operator writes to the agent: Enter sends, Shift-Enter breaks the line, ↑ recalls.

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { complain, tell } from "../ui/toasts.tsx";
import type { AgentApi } from "./api.ts";
import { COMMANDS, completions, type Meaning, understand } from "./commands.ts";

const REMEMBERED = 50;

function recall(name: string): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(`hive-said-${name}`) ?? "[]");
    return Array.isArray(kept) ? kept.filter((line) => typeof line === "string") : [];
  } catch {
    return [];
  }
}

export function Composer({ api, name }: { api: AgentApi; name: string }) {
  const line = useSignal("");
  const sending = useSignal(0); // how many lines are on their way
  const last = useRef<Promise<unknown>>(Promise.resolve());
  const helping = useSignal(false);
  const said = useSignal(recall(name));
  const back = useSignal(0);

  /** The box is free for the next line at once; lines go out one after the other. */
  function submit(): void {
    const typed = line.value;
    if (typed.trim() === "") return;
    const meaning = understand(typed);
    if (meaning.is === "help") {
      helping.value = true;
      line.value = "";
      return;
    }
    if (meaning.is === "unknown") {
      complain(new Error(`There is no command /${meaning.name}. /help lists them.`));
      return;
    }
    said.value = [...said.value, typed].slice(-REMEMBERED);
    localStorage.setItem(`hive-said-${name}`, JSON.stringify(said.value));
    line.value = "";
    back.value = 0;
    helping.value = false;
    sending.value++;
    const isUrgent = meaning.is === "command" && meaning.command.atOnce === true;
    if (isUrgent) void deliver(typed, meaning);
    else last.current = last.current.then(() => deliver(typed, meaning));
  }

  async function deliver(typed: string, meaning: Extract<Meaning, { is: "command" | "message" }>): Promise<void> {
    try {
      if (meaning.is === "command") tell(await meaning.command.run(api, meaning.argument));
      else await api.send(meaning.body);
    } catch (error) {
      complain(error);
      if (line.value === "") line.value = typed; // To try again; ↑ recalls it too.
    } finally {
      sending.value--;
    }
  }

  function key(event: KeyboardEvent): void {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    } else if (event.key === "Tab" && completions(line.value).length > 0) {
      event.preventDefault();
      line.value = `${completions(line.value)[0]} `;
    } else if (event.key === "ArrowUp" && (line.value === "" || back.value > 0)) {
      event.preventDefault();
      back.value = Math.min(said.value.length, back.value + 1);
      line.value = said.value.at(-back.value) ?? line.value;
    } else if (event.key === "ArrowDown" && back.value > 0) {
      event.preventDefault();
      back.value--;
      line.value = back.value === 0 ? "" : (said.value.at(-back.value) ?? "");
    }
  }

  const offered = completions(line.value);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {helping.value && (
        <dl class="commands">
          {COMMANDS.map((command) => (
            <div key={command.name}>
              <dt>/{command.name}{command.argument ? ` ${command.argument}` : ""}</dt>
              <dd>{command.help}</dd>
            </div>
          ))}
        </dl>
      )}
      {offered.length > 0 && <p class="dim offered">Tab: {offered.join("  ")}</p>}
      <label class="hidden" for="message">Message to {name}</label>
      <textarea
        id="message"
        rows={2}
        placeholder={`Message to ${name}, or /help`}
        value={line.value}
        onInput={(event) => (line.value = event.currentTarget.value)}
        onKeyDown={key}
      />
      <button type="submit" class="action primary" disabled={line.value.trim() === ""} aria-busy={sending.value > 0}>
        Send
      </button>
    </form>
  );
}
