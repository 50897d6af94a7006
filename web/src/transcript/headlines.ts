// One line for a tool's call: what a reader wants to know first. A tool that is not in the table
// shows its shortest telling argument.

import { known } from "../ui/known.ts";
import { fields, text } from "./rows.ts";

type Headline = (input: Record<string, unknown>) => string;

const HEADLINES: Record<string, Headline> = {
  Read: (input) => text(input.file_path),
  Write: (input) => text(input.file_path),
  Edit: (input) => text(input.file_path),
  Glob: (input) => [text(input.pattern), text(input.path)].filter(Boolean).join(" in "),
  Grep: (input) => [text(input.pattern), text(input.path)].filter(Boolean).join(" in "),
  Bash: (input) => firstLine(text(input.command)),
  WebFetch: (input) => text(input.url),
  WebSearch: (input) => text(input.query),
  mcp__bash__run: (input) => firstLine(text(input.cmd)),
  mcp__bash__status: (input) => `task ${String(input.id ?? "")}`,
  // A body that is long is shown below, as a whole.
  mcp__hyperhive__send: (input) => `to ${text(input.to)}${isLong(text(input.body)) ? "" : `: ${text(input.body)}`}`,
  mcp__hyperhive__recv: (input) => (input.wait_seconds ? `wait ${String(input.wait_seconds)} s` : ""),
  mcp__hyperhive__ask: (input) => text(input.question),
  mcp__hyperhive__answer: (input) => text(input.answer),
  mcp__hyperhive__remind: (input) => text(input.message),
  mcp__hyperhive__set_status: (input) => text(input.text),
};

/** Whether a text does not fit into a headline. */
export function isLong(value: string): boolean {
  return value.length > 160 || value.includes("\n");
}

/** The command when it fits; of a script, which is shown below, how it begins. */
function firstLine(command: string): string {
  return isLong(command) ? oneLine(command.split("\n")[0] ?? "", 60) : command;
}

/** The name without the server's prefix, for people. */
export function shortName(tool: string): string {
  const parts = tool.split("__");
  return parts.length === 3 && parts[0] === "mcp" ? `${parts[1]}·${parts[2]}` : tool;
}

export function headline(tool: string, input: unknown): string {
  const given = fields(input);
  const told = known(HEADLINES, tool)?.(given);
  const line = told ?? Object.values(given).find((value) => typeof value === "string" && value !== "");
  return oneLine(typeof line === "string" ? line : "");
}

export function oneLine(value: string, most = 160): string {
  const flat = value.replace(/\s+/g, " ").trim();
  return flat.length > most ? `${flat.slice(0, most - 1)}…` : flat;
}
