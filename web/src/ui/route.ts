// Where in the dashboard the viewer is: what stands behind `#/`.

import { signal } from "@preact/signals";

function here(): string {
  if (!location.hash.startsWith("#/")) return "";
  try {
    return decodeURIComponent(location.hash.slice(2));
  } catch {
    return ""; // A link that somebody cut short.
  }
}

export const route = signal(here());
window.addEventListener("hashchange", () => (route.value = here()));
