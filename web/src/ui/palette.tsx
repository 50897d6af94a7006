// Ctrl/⌘-K: go anywhere by typing. `?` shows the keys, `/` goes to the filter.

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

export interface Choice {
  label: string;
  go(): void;
}

const KEYS: [string, string][] = [
  ["Ctrl/⌘ K", "go to a page or an agent; pause, resume, stop"],
  ["/", "filter the list"],
  ["j · k", "next, previous item that needs you"],
  ["a · d · c", "approve or answer, deny or discard, comment, on the item with the focus"],
  ["Enter · Shift Enter", "send · new line, in a message"],
  ["↑", "the message before, in an empty box"],
  ["?", "these keys"],
];

/** Whether a key goes into a field. */
export function typing(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return target !== null && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

export function Palette({ choices }: { choices: Choice[] }) {
  const open = useSignal<"no" | "palette" | "keys">("no");
  const typed = useSignal("");
  const at = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    function key(event: KeyboardEvent): void {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        typed.value = "";
        at.value = 0;
        open.value = open.value === "palette" ? "no" : "palette";
      } else if (event.key === "Escape") {
        open.value = "no";
      } else if (!typing(event) && event.key === "?") {
        open.value = "keys";
      } else if (!typing(event) && event.key === "/") {
        const filter = document.getElementById("filter");
        if (filter !== null) {
          event.preventDefault();
          filter.focus();
        }
      }
    }
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  // Before the next key comes: whoever opens it types on.
  useLayoutEffect(() => input.current?.focus(), [open.value]);

  if (open.value === "no") return null;
  if (open.value === "keys") {
    return (
      <div class="palette" role="dialog" aria-modal="true" aria-label="Keys" onClick={() => (open.value = "no")}>
        <div>
          <dl class="commands">{KEYS.map(([key, what]) => <div key={key}><dt>{key}</dt><dd>{what}</dd></div>)}</dl>
        </div>
      </div>
    );
  }
  const found = choices.filter((choice) => choice.label.toLowerCase().includes(typed.value.toLowerCase()));
  const pick = (choice: Choice | undefined): void => {
    open.value = "no";
    choice?.go();
  };
  return (
    <div class="palette" role="dialog" aria-modal="true" aria-label="Go to" onClick={() => (open.value = "no")}>
      <div onClick={(event) => event.stopPropagation()}>
        <input
          ref={input}
          role="combobox"
          aria-expanded="true"
          aria-controls="choices"
          aria-label="Where to"
          placeholder="Where to?"
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
            at.value = 0;
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") at.value = Math.min(found.length - 1, at.value + 1);
            else if (event.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
            else if (event.key === "Enter") pick(found[at.value]);
            else return;
            event.preventDefault();
          }}
        />
        <ul id="choices" role="listbox">
          {found.map((choice, index) => (
            <li key={choice.label} role="option" aria-selected={index === at.value} onClick={() => pick(choice)}>
              {choice.label}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
