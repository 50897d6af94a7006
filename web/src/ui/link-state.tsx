// Whether what is on the screen is live.

import { link } from "../api/stream.ts";

export function LinkState() {
  const { state, since } = link.value;
  const at = new Date(since).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const said = {
    connecting: "connecting …",
    live: "live",
    lost: `reconnecting, stale since ${at}`,
    refused: "signed out",
  }[state];
  return (
    <span class={`link-state ${state}`} role="status">
      {said}
    </span>
  );
}
