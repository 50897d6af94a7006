// One row of what an agent did.

import { Markdown } from "../ui/rich.tsx";
import { count } from "../ui/numbers.ts";
import { Ago, span } from "../ui/time.tsx";
import { Folded } from "./folded.tsx";
import { headline, shortName } from "./headlines.ts";
import { fields, type Row, type Tokens } from "./rows.ts";
import { rendererOf } from "./tools/table.ts";

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

/** What a step read and wrote, and how long it took when that was long. */
function Cost({ tokens, took }: { tokens: Tokens | undefined; took?: number | undefined }) {
  const said = [
    ...(took !== undefined && took >= 1000 ? [span(took)] : []),
    ...(tokens !== undefined && tokens.read + tokens.wrote > 0 ? [`${count(tokens.read)} → ${count(tokens.wrote)} tokens`] : []),
  ];
  return said.length === 0 ? null : <span class="dim cost"> {said.join(" · ")}</span>;
}

function Tool({ row }: { row: Of<"tool"> }) {
  const took = row.result && Date.parse(row.result.at) - Date.parse(row.at);
  return (
    <div class="tool-call">
      <div class="call">
        <span aria-hidden="true">→</span> <b title={row.tool}>{shortName(row.tool)}</b>{" "}
        <span class="value">{headline(row.tool, row.input)}</span>
        <Cost tokens={row.tokens} took={took} />
      </div>
      <div class="detail">{rendererOf(row.tool)({ tool: row.tool, input: fields(row.input), result: row.result })}</div>
      {row.result === undefined && <div class="dim running">…</div>}
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
      <Cost tokens={row.tokens} />
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
      return (
        <div class="said">
          <Markdown text={row.text} />
          <Cost tokens={row.tokens} />
        </div>
      );
    case "thinking":
      return (
        <details class="thinking">
          <summary>thinking<Cost tokens={row.tokens} /></summary>
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
