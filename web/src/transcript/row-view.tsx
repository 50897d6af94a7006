// One row of what an agent did.

import { Ago, span } from "../ui/time.tsx";
import { Change } from "./change.tsx";
import { Folded } from "./folded.tsx";
import { fields, type Row, text } from "./rows.ts";
import { headline, shortName } from "./tools.ts";

type Of<K extends Row["kind"]> = Extract<Row, { kind: K }>;

function Turn({ row }: { row: Of<"turn"> }) {
  return (
    <header class="turn">
      <h3>
        ◆ TURN ← {row.from}
        {row.unread > 0 && <span class="dim"> · {row.unread} unread</span>}
        {row.delivery > 1 && <span class="badge warn">delivery {row.delivery}</span>}
      </h3>
      <Ago at={row.at} />
      <Folded text={row.body} label={null} />
    </header>
  );
}

function Tool({ row }: { row: Of<"tool"> }) {
  const input = fields(row.input);
  const edited = row.tool === "Edit" || row.tool === "Write";
  const took = row.result && Date.parse(row.result.at) - Date.parse(row.at);
  return (
    <div class="tool-call">
      <div class="call">
        <span aria-hidden="true">→</span> <b title={row.tool}>{shortName(row.tool)}</b>{" "}
        <span class="value">{headline(row.tool, row.input)}</span>
        {took !== undefined && took >= 1000 && <span class="dim"> {span(took)}</span>}
      </div>
      {edited ? (
        <details>
          <summary class="dim">change</summary>
          <Change before={text(input.old_string)} after={text(input.new_string) || text(input.content)} />
        </details>
      ) : (
        <details>
          <summary class="dim">arguments</summary>
          <pre>{JSON.stringify(row.input, null, 2)}</pre>
        </details>
      )}
      {row.result === undefined ? (
        <div class="dim running">…</div>
      ) : (
        <div class={row.result.failed ? "result bad" : "result"}>
          <Folded text={row.result.text || "(nothing)"} label={<span aria-hidden="true">←</span>} />
        </div>
      )}
    </div>
  );
}

function End({ row }: { row: Of<"end"> }) {
  const took = row.took !== undefined && row.took >= 0 ? ` · ${span(row.took)}` : "";
  return (
    <footer class={row.ok ? "end good" : "end bad"}>
      {row.ok ? "✓ turn ok" : `✗ turn fail${row.outcome && ` (${row.outcome})`}`}
      {row.note !== "" && ` — ${row.note}`}
      <span class="dim">{took}</span>
    </footer>
  );
}

export function RowView({ row }: { row: Row }) {
  switch (row.kind) {
    case "turn":
      return <Turn row={row} />;
    case "tool":
      return <Tool row={row} />;
    case "end":
      return <End row={row} />;
    case "text":
      return <p class="said">{row.text}</p>;
    case "thinking":
      return (
        <details class="thinking">
          <summary>thinking</summary>
          <p>{row.text || "(not shown by the model)"}</p>
        </details>
      );
    case "note":
      return <p class={`note ${row.tone}`}>{row.text}</p>;
    case "login":
      return <pre class="login-line">{row.text}</pre>;
    case "gap":
      return (
        <p class="gap" role="note">
          — {row.dropped > 0 ? `${row.dropped} events are missing here` : "events are missing here"} —
        </p>
      );
  }
}
