// Commands: what was run, and what it wrote.

import { Folded } from "../folded.tsx";
import { isLong } from "../headlines.ts";
import { fields, number, text, type ToolResult } from "../rows.ts";
import { Plain } from "./plain.tsx";
import type { Renderer } from "./tool.ts";

/** How the first line of a task's text says that it failed. */
const FAILED = /^task \d+: [^\n]*exit code (?!0\b)/;

function parsed(result: ToolResult): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(result.text);
    return Object.keys(fields(value)).length > 0 ? fields(value) : undefined;
  } catch {
    return undefined;
  }
}

function Long({ command }: { command: string }) {
  return isLong(command) ? <pre class="command">{command}</pre> : null;
}

export const Bash: Renderer = ({ input, result }) => (
  <>
    <Long command={text(input.command)} />
    <Plain result={result} terminal />
  </>
);

/** A background task: its answer is a record of how it stands. */
export const Task: Renderer = ({ input, result }) => {
  const record = result === undefined ? undefined : parsed(result);
  return (
    <>
      <Long command={text(input.cmd)} />
      {record === undefined ? (
        <Plain result={result && { ...result, failed: result.failed || FAILED.test(result.text) }} terminal />
      ) : (
        <div class={number(record.exit_code) === 0 ? "result" : "result bad"}>
          <p class="dim">{text(record.summary) || text(record.status)}</p>
          {text(record.stdout) !== "" && <Folded text={text(record.stdout)} label="stdout" terminal />}
          {text(record.stderr) !== "" && <Folded text={text(record.stderr)} label="stderr" terminal />}
        </div>
      )}
    </>
  );
};
