// Changes of files: unified or side by side, with or without changes of blanks alone.

import { signal, useSignal } from "@preact/signals";
import { type Piece, shown } from "../api/render.ts";
import type { DiffLine, FileChange } from "../api/types.ts";
import { pairs, withoutBlanks } from "./lines.ts";
import { Nodes } from "./rich.tsx";

/** How the reader likes changes; the same everywhere. */
const sideBySide = signal(localStorage.getItem("hive-diff") === "split");
const hideBlanks = signal(false);
/** Longer changes are unfolded by the reader. */
const FOLDED = 60;

const LOOK: Record<string, string> = { "+": "added", "-": "removed", " ": "", "@": "hunk" };

function Cells({ line, number }: { line: DiffLine | undefined; number: number | null | undefined }) {
  if (line === undefined) return <><td class="number" /><td class="absent" /></>;
  return (
    <>
      <td class="number">{number ?? ""}</td>
      <td class={LOOK[line.sign]}>
        <span class="sign">{line.sign === "@" ? "" : line.sign}</span>
        <Nodes nodes={line.inside} />
      </td>
    </>
  );
}

function Lines({ lines }: { lines: DiffLine[] }) {
  if (sideBySide.value) {
    return (
      <tbody>
        {pairs(lines).map(([old, now], index) => (
          <tr key={index}>
            <Cells line={old} number={old?.old} />
            <Cells line={now} number={now?.new} />
          </tr>
        ))}
      </tbody>
    );
  }
  return (
    <tbody>
      {lines.map((line, index) => (
        <tr key={index}>
          <td class="number">{line.old ?? ""}</td>
          <Cells line={line} number={line.new} />
        </tr>
      ))}
    </tbody>
  );
}

function File({ file, onWhole }: { file: FileChange; onWhole: (() => void) | undefined }) {
  const whole = useSignal(false);
  const lines = hideBlanks.value ? withoutBlanks(file.lines) : file.lines;
  const folded = !whole.value && file.lines.length > FOLDED;
  return (
    <div class="file-change">
      <p class="path">
        <b>{file.path || "change"}</b> <span class="added">+{file.added}</span> <span class="removed">−{file.removed}</span>
      </p>
      <div class="table-frame" tabIndex={0} role="region" aria-label={`Change of ${file.path || "a file"}`}>
        <table class={sideBySide.value ? "diff split" : "diff"}><Lines lines={folded ? lines.slice(0, FOLDED) : lines} /></table>
      </div>
      {folded && (
        <button
          type="button"
          class="action"
          onClick={() => {
            whole.value = true;
            onWhole?.();
          }}
        >
          Show {file.is_cut ? "the first" : "all"} {lines.length} lines
        </button>
      )}
      {file.is_cut && <p class="dim">There is more than this page shows; look at the commit itself.</p>}
    </div>
  );
}

/** Whether a change is shown as a whole from the start. */
export function isShort(files: FileChange[]): boolean {
  return files.every((file) => file.lines.length <= FOLDED);
}

export function Diff({ piece, onWhole, switches = false }: { piece: Piece; onWhole?: (index: number) => void; switches?: boolean }) {
  const files = shown(piece).value?.files;
  if (files === undefined) {
    return <pre>{piece.kind === "change" ? piece.after : piece.text}</pre>;
  }
  return (
    <div class="diffs">
      {switches && <div class="buttons small-print">
        <label>
          <input
            type="checkbox"
            checked={sideBySide.value}
            onChange={(event) => {
              sideBySide.value = event.currentTarget.checked;
              localStorage.setItem("hive-diff", sideBySide.value ? "split" : "unified");
            }}
          />{" "}
          side by side
        </label>
        <label>
          <input type="checkbox" checked={hideBlanks.value} onChange={(event) => (hideBlanks.value = event.currentTarget.checked)} />{" "}
          hide changes of blanks
        </label>
      </div>}
      {files.map((file, index) => (
        <File key={index} file={file} onWhole={onWhole === undefined ? undefined : () => onWhole(index)} />
      ))}
    </div>
  );
}
