// What will happen by itself: scheduled prompts and reminders of all agents.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../api/client.ts";
import type { Reminders, ScheduleRow } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { Nothing } from "../ui/nothing.tsx";
import { Ago } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { absent, mailMoved } from "./store.ts";

const SHOWN = 200;

export function Schedules() {
  const schedules = useSignal<ScheduleRow[] | undefined>(undefined);
  const reminders = useSignal<Reminders["reminders"] | undefined>(undefined);
  const load = (): void => {
    hive.schedules().catch(absent({ schedules: [] })).then((list) => (schedules.value = list.schedules), complain);
    get<Reminders>("/api/reminders").then((list) => (reminders.value = list.reminders), complain);
  };
  // One that fires becomes a message.
  useEffect(load, [mailMoved.value]);
  return (
    <>
      <section class="panel" aria-label="Schedules">
        <h2>Schedules <span class="dim">{schedules.value?.length ?? ""}</span></h2>
        {schedules.value === undefined ? <Nothing title="Loading …" /> : schedules.value.length === 0 ? (
          <Nothing title="Nothing is scheduled."><p>Agents with the scheduling group can have prompts sent to them at a time or by a rule.</p></Nothing>
        ) : (
          <div class="table-frame" tabIndex={0} role="region" aria-label="Scheduled prompts">
            <table>
              <thead><tr><th>Agent</th><th>Next</th><th>Rule</th><th>Prompt</th><th><span class="hidden">Actions</span></th></tr></thead>
              <tbody>
                {schedules.value.slice(0, SHOWN).map((row) => (
                  <tr key={row.schedule_id}>
                    <td class="data">{row.agent}</td>
                    <td><Ago at={row.next_at} /></td>
                    <td class="data">{row.cron === null ? "once" : `${row.cron} ${row.time_zone ?? ""}`}</td>
                    <td class="prompt">{row.prompt}</td>
                    <td><Action class="small danger" confirm="Delete this schedule? Its agent is told." run={() => hive.cancelSchedule(row.schedule_id).then(load)}>Delete</Action></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section class="panel" aria-label="Reminders">
        <h2>Reminders <span class="dim">{reminders.value?.length ?? ""}</span></h2>
        {reminders.value === undefined ? <Nothing title="Loading …" /> : reminders.value.length === 0 ? (
          <Nothing title="No agent has set a reminder." />
        ) : (
          <div class="table-frame" tabIndex={0} role="region" aria-label="Reminders of all agents">
            <table>
              <thead><tr><th>Agent</th><th>Due</th><th>Message</th><th><span class="hidden">Actions</span></th></tr></thead>
              <tbody>
                {reminders.value.slice(0, SHOWN).map((row) => (
                  <tr key={row.reminder_id}>
                    <td class="data">{row.agent}</td>
                    <td><Ago at={row.due_at} /></td>
                    <td class="prompt">{row.message}</td>
                    <td>
                      <Action class="small danger" confirm="Delete this reminder?" run={() => post("/api/reminders/cancel", { agent: row.agent, reminder_id: row.reminder_id }).then(load)}>
                        Delete
                      </Action>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </>
  );
}
