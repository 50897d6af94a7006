// Where in the dashboard the viewer is: what stands behind `#/`.

import { signal } from "@preact/signals";

function here(): string {
  return location.hash.startsWith("#/") ? decodeURIComponent(location.hash.slice(2)) : "";
}

export const route = signal(here());
window.addEventListener("hashchange", () => (route.value = here()));
