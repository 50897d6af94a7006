// Places with nothing in them say so, and what to do next.

import type { ComponentChildren } from "preact";

export function Nothing({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="nothing">
      <p class="title">{title}</p>
      {children}
    </div>
  );
}
