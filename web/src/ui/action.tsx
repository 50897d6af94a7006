// A button that does something: it shows that it runs, asks where it destroys, and says how it went.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { complain, tell } from "./toasts.tsx";

interface Props {
  run: () => Promise<unknown>;
  children: ComponentChildren;
  /** What to ask first. */
  confirm?: string | undefined;
  /** What to say when it worked. */
  done?: string;
  class?: string;
  title?: string;
  disabled?: boolean;
  /** The key that presses it while its item has the focus. */
  shortcut?: string;
}

/** Asks before something is done, where the eye is: in place of the button. */
function Sure({ question, yes, no }: { question: string; yes: () => void; no: () => void }) {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  return (
    <span
      class="sure"
      role="alertdialog"
      aria-label={question}
      onKeyDown={(event) => {
        if (event.key === "Escape") no();
      }}
    >
      <span>{question}</span>
      <button type="button" class="action danger" ref={first} onClick={yes}>Yes</button>
      <button type="button" class="action" onClick={no}>No</button>
    </span>
  );
}

export function Action({ run, children, confirm, done, class: kind = "", title, disabled = false, shortcut }: Props) {
  const running = useSignal(false);
  const asking = useSignal(false);
  async function go(): Promise<void> {
    asking.value = false;
    if (running.value) return;
    running.value = true;
    try {
      await run();
      if (done !== undefined) tell(done);
    } catch (error) {
      complain(error);
    } finally {
      running.value = false;
    }
  }
  if (asking.value && confirm !== undefined) {
    return <Sure question={confirm} yes={() => void go()} no={() => (asking.value = false)} />;
  }
  return (
    <button
      type="button"
      class={`action ${kind}`}
      title={title}
      disabled={disabled || running.value}
      aria-busy={running.value}
      data-key={shortcut}
      onClick={() => {
        if (confirm === undefined) void go();
        else asking.value = true;
      }}
    >
      {children}
    </button>
  );
}
