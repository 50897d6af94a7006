// The agent's notes and other files of its state directory, to look at.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Nothing } from "../ui/nothing.tsx";
import { bytes } from "../ui/numbers.ts";
import { Markdown } from "../ui/rich.tsx";
import { Ago } from "../ui/time.tsx";
import { complain } from "../ui/toasts.tsx";
import type { AgentApi, Look } from "./api.ts";

function Crumbs({ path, go }: { path: string; go: (path: string) => void }) {
  const names = path.split("/").filter((name) => name !== "");
  return (
    <nav class="crumbs" aria-label="Path">
      <button type="button" class="quiet" onClick={() => go("")}>/state</button>
      {names.map((name, index) => (
        <span key={index}>
          {" / "}
          <button type="button" class="quiet" onClick={() => go(names.slice(0, index + 1).join("/"))}>{name}</button>
        </span>
      ))}
    </nav>
  );
}

function File({ file }: { file: Extract<Look, { kind: "file" }> }) {
  const raw = useSignal(false);
  const prose = /\.(md|markdown)$/i.test(file.path);
  if (file.is_binary) return <Nothing title="This file is no text."><p>{bytes(file.size)}</p></Nothing>;
  return (
    <>
      <p class="dim">
        {bytes(file.size)}{file.is_cut && ", the beginning"}
        {prose && <> · <button type="button" class="quiet" aria-pressed={raw.value} onClick={() => (raw.value = !raw.value)}>{raw.value ? "as a text" : "as it is written"}</button></>}
      </p>
      {prose && !raw.value ? <Markdown text={file.text} /> : <pre tabIndex={0}>{file.text}</pre>}
    </>
  );
}

export function Files({ api }: { api: AgentApi }) {
  const path = useSignal("");
  const look = useSignal<Look | undefined>(undefined);
  useEffect(() => {
    let stale = false;
    api.files(path.value).then((found) => {
      if (!stale) look.value = found;
    }, complain);
    return () => {
      stale = true;
    };
  }, [api, path.value]);
  const found = look.value;
  if (found === undefined) return <Nothing title="Loading …" />;
  return (
    <div class="files">
      <Crumbs path={found.path} go={(to) => (path.value = to)} />
      {found.kind === "file" ? <File file={found} /> : found.entries.length === 0 ? (
        <Nothing title="Nothing here yet."><p>What the agent writes to its state directory appears here.</p></Nothing>
      ) : (
        <table>
          <thead><tr><th>Name</th><th>Size</th><th>Changed</th></tr></thead>
          <tbody>
            {found.entries.map((entry) => (
              <tr key={entry.name}>
                <td class="data"><button type="button" class="quiet name" onClick={() => (path.value = `${found.path}/${entry.name}`.replace(/^\//, ""))}>{entry.name}{entry.is_dir ? "/" : ""}</button></td>
                <td class="data">{entry.is_dir ? "" : bytes(entry.size)}</td>
                <td><Ago at={entry.modified_at} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}
