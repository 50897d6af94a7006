// What the engine's login wants opened.

/** The address that the engine wants the operator to open: the last one that is one. */
export function address(lines: string[]): URL | undefined {
  const found = lines.join("\n").match(/https:\/\/[^\s"'<>]+/g) ?? [];
  const last = found.findLast((text) => URL.canParse(text));
  return last === undefined ? undefined : new URL(last);
}
