// The slash commands of the send box. Everything else is a message.

import type { AgentApi } from "./api.ts";

export interface Command {
  name: string;
  argument: string | undefined;
  help: string;
  /** Whether it waits for nothing that was said before. */
  atOnce?: boolean;
  run(api: AgentApi, argument: string): Promise<string>;
}

export const COMMANDS: Command[] = [
  {
    name: "model",
    argument: "NAME",
    help: "use this model from the next turn on",
    run: async (api, name) => {
      if (name === "") throw new Error("Which model? /model NAME");
      await api.model(name);
      return `The next turn uses ${name}.`;
    },
  },
  { name: "compact", argument: undefined, help: "compact the session", run: said((api) => api.compact(), "Compacting.") },
  {
    name: "new-session",
    argument: undefined,
    help: "let the next turn begin a session of its own",
    run: said((api) => api.newSession(), "The next turn begins a new session."),
  },
  { name: "interrupt", argument: undefined, help: "stop the running turn", atOnce: true, run: said((api) => api.interrupt(), "Stopping the turn.") },
  { name: "lift", argument: undefined, help: "stop waiting for a usage limit", run: said((api) => api.lift(), "The wait is lifted.") },
];

function said(action: (api: AgentApi) => Promise<unknown>, words: string): Command["run"] {
  return async (api) => {
    await action(api);
    return words;
  };
}

/** What a typed line means: a command, help, an unknown command, or a message. */
export type Meaning =
  | { is: "message"; body: string }
  | { is: "command"; command: Command; argument: string }
  | { is: "help" }
  | { is: "unknown"; name: string };

export function understand(line: string): Meaning {
  const match = /^\/([a-z-]+)(?:\s+(.*))?$/s.exec(line.trim());
  if (match === null) return { is: "message", body: line };
  const [, name = "", argument = ""] = match;
  if (name === "help") return { is: "help" };
  const command = COMMANDS.find((one) => one.name === name);
  return command ? { is: "command", command, argument: argument.trim() } : { is: "unknown", name };
}

export function completions(line: string): string[] {
  if (!/^\/[a-z-]*$/.test(line)) return [];
  return [...COMMANDS.map((one) => `/${one.name}`), "/help"].filter((name) => name.startsWith(line) && name !== line);
}
