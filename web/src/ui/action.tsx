// A button that does something on the host: it shows that it runs, asks where it destroys, says what
// went wrong, and is usable again afterwards (D7).

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { complain, tell } from "./toasts.tsx";

interface Props {
  run(): Promise<unknown>;
  children: ComponentChildren;
  /** The question to ask first. */
  confirm?: string;
  /** What to say when it worked. */
  done?: string;
  class?: string;
  title?: string;
  disabled?: boolean;
}

export function Action({ run, children, confirm, done, class: kind = "", title, disabled = false }: Props) {
  const running = useSignal(false);
  async function go(): Promise<void> {
    if (running.value || (confirm !== undefined && !window.confirm(confirm))) return;
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
  return (
    <button
      type="button"
      class={`action ${kind}`}
      title={title}
      disabled={disabled || running.value}
      aria-busy={running.value}
      onClick={() => void go()}
    >
      {children}
    </button>
  );
}
