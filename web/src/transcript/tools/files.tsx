// Reading, searching and changing files.

import { Diff } from "../../ui/diff.tsx";
import { Folded } from "../folded.tsx";
import { fields, text } from "../rows.ts";
import { Arguments, Plain } from "./plain.tsx";
import type { Renderer } from "./tool.ts";

/** Longer changes are folded until somebody looks. */
const LONG = 2_000;

/** A file's text, without the line numbers that the engine puts before it. */
export const Read: Renderer = ({ result }) => {
  if (result === undefined) return null;
  const numbered = /^\s*\d+[→\t]/;
  const lines = result.text.split("\n");
  const bare = lines.every((line) => line === "" || numbered.test(line)) ? lines.map((line) => line.replace(numbered, "")).join("\n") : result.text;
  return <Folded text={bare} label={<span aria-hidden="true">←</span>} failed={result.failed} />;
};

export const Write: Renderer = ({ input, result }) => {
  const after = text(input.content);
  const change = <Diff piece={{ kind: "change", path: text(input.file_path), before: "", after }} />;
  return (
    <>
      <details open={after.length <= LONG}>
        <summary class="dim">the new file</summary>
        {change}
      </details>
      {result?.failed === true && <Plain result={result} />}
    </>
  );
};

export const Edit: Renderer = ({ input, result }) => {
  const path = text(input.file_path);
  const edits = Array.isArray(input.edits) ? input.edits.map(fields) : [input];
  return (
    <>
      {edits.slice(0, 20).map((edit, index) => {
        const before = text(edit.old_string);
        const after = text(edit.new_string);
        return (
          <details key={index} open={before.length + after.length <= LONG}>
            <summary class="dim">change</summary>
            <Diff piece={{ kind: "change", path, before, after }} />
          </details>
        );
      })}
      {result?.failed === true && <Plain result={result} />}
    </>
  );
};

/** Places that were found: one line each. */
export const Search: Renderer = ({ input, result }) => (
  <>
    {Object.keys(input).length > 2 && <Arguments input={input} />}
    <Plain result={result} />
  </>
);
