// What the viewer chose: colours, and the spelling of the original as a switch.

import { known } from "./known.ts";
import { effect, signal } from "@preact/signals";

export type Colours = "auto" | "dark" | "light";

export const colours = signal<Colours>(stored("hive-colours", ["auto", "dark", "light"], "auto"));
export const spelling = signal<"plain" | "leet">(stored("hive-spelling", ["plain", "leet"], "plain"));

effect(() => {
  document.documentElement.dataset.colours = colours.value;
  localStorage.setItem("hive-colours", colours.value);
});
effect(() => {
  document.documentElement.dataset.spelling = spelling.value;
  localStorage.setItem("hive-spelling", spelling.value);
});

const LEET: Record<string, string> = {
  Rebuild: "R3BU1LD",
  Restart: "R3ST4RT",
  Stop: "ST0P",
  Start: "ST4RT",
  Pause: "P4US3",
  Resume: "R3SUM3",
  Destroy: "DESTR0Y",
  "Update all": "UPD4TE 4LL",
  "Request spawn": "R3QU3ST SP4WN",
  Permissions: "P3RM1SS10NS",
};

/** A word on a button, spelled as the viewer likes it. */
export function word(plain: string): string {
  return spelling.value === "leet" ? (known(LEET, plain) ?? plain) : plain;
}

function stored<T extends string>(key: string, known: readonly T[], otherwise: T): T {
  const value = localStorage.getItem(key);
  return known.find((one) => one === value) ?? otherwise;
}
