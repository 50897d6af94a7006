// Prose that is long shows its beginning, and a button for the rest.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Tall({ children }: { children: ComponentChildren }) {
  const frame = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const opened = useSignal(false);
  const isCut = useSignal(false);
  useEffect(() => {
    if (frame.current === null || content.current === null) return;
    const sizes = new ResizeObserver(() => {
      if (frame.current !== null && !opened.peek()) isCut.value = frame.current.scrollHeight > frame.current.clientHeight + 1;
    });
    sizes.observe(frame.current);
    sizes.observe(content.current);
    return () => sizes.disconnect();
  }, []);
  return (
    <>
      <div ref={frame} class={opened.value ? "tall opened" : isCut.value ? "tall cut" : "tall"}>
        <div ref={content}>{children}</div>
      </div>
      {isCut.value && (
        <button type="button" class="quiet unfold" aria-expanded={opened.value} onClick={() => (opened.value = !opened.value)}>
          {opened.value ? "▴ Show less" : "▾ Show all of it"}
        </button>
      )}
    </>
  );
}
