// A request that changes the hive: exactly what would be applied, before it can be approved.

import { useSignal } from "@preact/signals";
import { ApiError } from "../api/client.ts";
import { isTooLong, type Piece, shown } from "../api/render.ts";
import type { Approval } from "../api/types.ts";
import { Action } from "../ui/action.tsx";
import { Diff, isShort } from "../ui/diff.tsx";
import { Ago } from "../ui/time.tsx";
import { tell } from "../ui/toasts.tsx";
import { hive } from "./api.ts";
import { powers } from "./powers.ts";
import { refresh } from "./store.ts";

export function ApprovalCard({ approval }: { approval: Approval }) {
  const note = useSignal<string | undefined>(undefined);
  const opened = useSignal<number[]>([]);
  const piece: Piece = { kind: "patch", text: approval.diff };
  const files = shown(piece).value?.files;
  // Long content must have been unfolded before it can be approved.
  const long = files === undefined ? 0 : files.filter((file) => !isShort([file])).length;
  // What this page cannot show as a whole is not approved on it.
  const partial = isTooLong(piece) || (files?.some((file) => file.is_cut) ?? false);
  const unread = approval.diff !== "" && (partial || files === undefined || opened.value.length < long);
  const gains = powers(approval.diff);
  const again = (): void => refresh("approvals", "state");

  async function decide(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      tell(`${error.message}. Look at it again.`);
    } finally {
      again();
    }
  }

  return (
    <>
      <p>
        <b>{approval.requested_by}</b> wants {approval.kind === "spawn" ? "a new agent " : "to change "}
        <b>{approval.agent}</b>
        <span class="dim">
          , <Ago at={approval.requested_at} />
          {approval.expires_at !== null && <>, expires <Ago at={approval.expires_at} /></>}
        </span>
      </p>
      {approval.reason !== "" && (
        <blockquote class="written">
          <span class="dim">written by {approval.requested_by}, not checked:</span> {approval.reason}
        </blockquote>
      )}
      {gains.length > 0 && (
        <div class="gains" role="note">
          <b>Changes what it may do:</b>
          <ul>{gains.map((line) => <li key={line}><code>{line}</code></li>)}</ul>
        </div>
      )}
      {approval.diff === "" ? <p class="dim">It changes no file.</p> : (
        <Diff piece={piece} switches onWhole={(index) => (opened.value = [...new Set([...opened.value, index])])} />
      )}
      <p class="small-print dim">
        content <code title={approval.hash}>{approval.hash.slice(0, 16)}</code>
        {approval.commit !== null && <> · commit <code title={approval.commit}>{approval.commit.slice(0, 12)}</code></>}
      </p>
      {note.value !== undefined && (
        <textarea
          rows={2}
          autoFocus
          aria-label={`Note to ${approval.requested_by}`}
          placeholder="What to tell them"
          value={note.value}
          onInput={(event) => (note.value = event.currentTarget.value)}
        />
      )}
      <div class="buttons">
        <Action
          class="primary"
          shortcut="a"
          disabled={unread}
          title={partial ? "This page does not show all of it" : unread ? "Show all lines first" : "Applies exactly what is shown here"}
          run={() => decide(hive.approve(approval.approval_id, approval.hash, note.value ?? ""))}
          done={`Approved: ${approval.agent}.`}
        >
          Approve
        </Action>
        <Action class="danger" shortcut="d" run={() => decide(hive.deny(approval.approval_id, note.value ?? ""))} done="Denied.">
          Deny
        </Action>
        {note.value === undefined && (
          <button type="button" class="action" data-key="c" onClick={() => (note.value = "")}>Add a note</button>
        )}
      </div>
      {partial ? (
        <p class="dim">It is too long to be shown here as a whole. Read and approve it with <code>hive-c0re approve {approval.approval_id}</code>.</p>
      ) : unread && long > 0 && <p class="dim">Show all lines before you approve.</p>}
    </>
  );
}
