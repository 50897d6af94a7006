// Who may do what: tool groups and capabilities of every agent, changed by the operator alone.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { PermissionRow } from "../api/types.ts";
import { Nothing } from "../ui/nothing.tsx";
import { word } from "../ui/settings.ts";
import { complain, tell } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { absent } from "./store.ts";

const GROUPS: [name: string, what: string][] = [
  ["messaging", "write to others, ask, remind"],
  ["meta", "who it is and how it is seen"],
  ["inbox", "what is open around it"],
  ["execution", "gates nothing: background commands are always there"],
  ["lifecycle", "stop, start and restart its children"],
  ["approvals", "ask for new agents and changed configurations"],
  ["scheduling", "prompts at a time"],
  ["diagnostics", "logs of itself and its children"],
  ["web_tools", "fetch from and search the web"],
];
const CAPABILITIES: [name: string, what: string][] = [
  ["query_agent_state", "look into the affairs of agents that are not its children"],
  ["read_host_journal", "read the log of the host"],
];
const SHOWN = 60;

interface CellProps {
  row: PermissionRow;
  name: string;
  has: boolean;
  kind: "group" | "capability";
  changed: (row: PermissionRow) => void;
}

function Cell({ row, name, has, kind, changed }: CellProps) {
  const running = useSignal(false);
  async function toggle(): Promise<void> {
    running.value = true;
    const verb = `${has ? "revoke" : "grant"}${kind === "capability" ? "_capabilities" : ""}`;
    try {
      changed(await hive.setPermissions(row.name, { [verb]: [name] }));
      tell(`${row.name} ${has ? "no longer has" : "now has"} ${name}. Its engine sees it from the next turn on.`);
    } catch (error) {
      complain(error);
    } finally {
      running.value = false;
    }
  }
  return (
    <td class="tick">
      <input
        type="checkbox"
        aria-label={`${row.name}: ${name}`}
        aria-busy={running.value}
        disabled={running.value}
        checked={has}
        onChange={(event) => {
          event.currentTarget.checked = has; // It shows what the host has, not what was clicked.
          void toggle();
        }}
      />
    </td>
  );
}

export function Permissions() {
  const rows = useSignal<PermissionRow[] | undefined>(undefined);
  const filter = useSignal("");
  useEffect(() => {
    hive.permissions().catch(absent({ agents: [] })).then((list) => (rows.value = list.agents), complain);
  }, []);
  const all = rows.value;
  const changed = (row: PermissionRow): void => void (rows.value = (rows.value ?? []).map((one) => (one.name === row.name ? row : one)));
  if (all === undefined) return <Nothing title="Loading …" />;
  const found = all.filter((row) => row.name.includes(filter.value.trim()));
  return (
    <section class="panel" aria-label={word("Permissions")}>
      <h2>
        {word("Permissions")}
        <input id="filter" placeholder="/ filter" aria-label="Filter agents" value={filter.value} onInput={(event) => (filter.value = event.currentTarget.value)} />
      </h2>
      <p class="dim">Which tools each agent may use. A tick counts at once: the hive refuses what is not ticked; the agent's own list of tools follows with its next turn. Only you can change this.</p>
      {all.length === 0 ? <Nothing title="There are no agents yet." /> : (
        <div class="table-frame" tabIndex={0} role="region" aria-label="Who may do what">
          <table class="matrix">
            <thead>
              <tr>
                <th>Agent</th>
                {GROUPS.map(([name, what]) => <th key={name} title={what}>{name.replace("_", " ")}</th>)}
                {CAPABILITIES.map(([name, what]) => <th key={name} class="capability" title={what}>{name.replaceAll("_", " ")}</th>)}
                <th>May write to</th>
              </tr>
            </thead>
            <tbody>
              {found.slice(0, SHOWN).map((row) => (
                <tr key={row.name}>
                  <th scope="row" class="data">{row.name}{row.is_root === true && <span class="badge">root</span>}</th>
                  {GROUPS.map(([name]) => <Cell key={name} row={row} name={name} kind="group" has={row.groups.includes(name)} changed={changed} />)}
                  {CAPABILITIES.map(([name]) => <Cell key={name} row={row} name={name} kind="capability" has={row.capabilities.includes(name)} changed={changed} />)}
                  <td class="data">{row.recipients.length === 0 ? <span class="dim">everybody</span> : row.recipients.join(", ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.length > SHOWN && <p class="dim">{found.length - SHOWN} more: filter by name.</p>}
      <dl class="commands">
        {[...GROUPS, ...CAPABILITIES].map(([name, what]) => <div key={name}><dt>{name}</dt><dd>{what}</dd></div>)}
      </dl>
    </section>
  );
}
