// What can be done with a row: copy it, link to it, see the event as the host told it.

import { useSignal } from "@preact/signals";
import { complain, tell } from "../ui/toasts.tsx";
import type { EventRow } from "../api/types.ts";

export function RowMenu({ raw, link }: { raw: () => EventRow | undefined; link: string }) {
  const shown = useSignal<string | undefined>(undefined);
  const json = (): string => JSON.stringify(raw() ?? {}, null, 2);
  return (
    <div class="row-menu">
      <a href={link} aria-label="Link to this event" title="Link to this event">#</a>
      <button type="button" class="quiet" title="Copy the event" aria-label="Copy the event" onClick={() => void navigator.clipboard.writeText(json()).then(() => tell("Copied."), complain)}>
        copy
      </button>
      <button type="button" class="quiet" title="The event as it came" aria-label="The event as it came" aria-expanded={shown.value !== undefined} onClick={() => (shown.value = shown.value === undefined ? json() : undefined)}>
        {"{}"}
      </button>
      {shown.value !== undefined && <pre class="raw">{shown.value}</pre>}
    </div>
  );
}
