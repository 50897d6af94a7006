// Lines of a change, arranged for the reader.

import type { DiffLine, Node } from "../api/types.ts";

function plain(nodes: Node[]): string {
  return nodes.map((node) => (typeof node === "string" ? node : plain(node.inside ?? []))).join("");
}

/** Leaves out removed and added lines that differ in blanks only. */
export function withoutBlanks(lines: DiffLine[]): DiffLine[] {
  const squeezed = (line: DiffLine): string => plain(line.inside).replace(/\s+/g, "");
  const kept: DiffLine[] = [];
  const run = (sign: string, from: number): number => {
    let end = from;
    while (lines[end]?.sign === sign) end++;
    return end;
  };
  for (let at = 0; at < lines.length; ) {
    const removed = run("-", at);
    const added = run("+", removed);
    if (added === at) {
      kept.push(...lines.slice(at, at + 1));
      at++;
      continue;
    }
    const before = lines.slice(at, removed);
    const after = lines.slice(removed, added);
    const same = before.length === after.length && before.every((line, n) => squeezed(line) === squeezed(after[n] ?? line));
    kept.push(...(same ? after.map((line) => ({ ...line, sign: " " as const })) : [...before, ...after]));
    at = added;
  }
  return kept;
}

/** Pairs of lines for two columns: removed beside added. */
export function pairs(lines: DiffLine[]): [DiffLine | undefined, DiffLine | undefined][] {
  const rows: [DiffLine | undefined, DiffLine | undefined][] = [];
  let removed: DiffLine[] = [];
  const flush = (): void => {
    for (const line of removed) rows.push([line, undefined]);
    removed = [];
  };
  for (const line of lines) {
    if (line.sign === "-") removed.push(line);
    else if (line.sign === "+") rows.push([removed.shift(), line]);
    else {
      flush();
      rows.push([line, line]);
    }
  }
  flush();
  return rows;
}
