// Short remarks that go away by themselves; refusals stay until they are dismissed.

import { signal } from "@preact/signals";
import { ApiError, Unreachable } from "../api/client.ts";

interface Toast {
  id: number;
  text: string;
  hint: string | undefined;
  bad: boolean;
}

const LIFE = 5_000;
const MOST = 4;
const toasts = signal<Toast[]>([]);
let next = 1;

function add(toast: Omit<Toast, "id">): void {
  const id = next++;
  toasts.value = [...toasts.value.slice(1 - MOST), { ...toast, id }];
  if (!toast.bad) setTimeout(() => dismiss(id), LIFE);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function tell(text: string): void {
  add({ text, hint: undefined, bad: false });
}

export function complain(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return; // The sign-in page says it.
  const hint = error instanceof ApiError ? error.hint : undefined;
  const offline = error instanceof Unreachable;
  const text = error instanceof Error ? error.message : String(error);
  add({ text, hint: offline ? "Is the daemon running? The page tries again by itself." : hint, bad: true });
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.bad ? "toast bad" : "toast"}>
          <p>{toast.text}</p>
          {toast.hint !== undefined && <p class="hint">{toast.hint}</p>}
          <button type="button" class="quiet" onClick={() => dismiss(toast.id)} aria-label="Dismiss">
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
