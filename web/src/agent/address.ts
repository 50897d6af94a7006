// What the engine's login wants opened.

/** The address that the engine wants the operator to open. */
export function address(lines: string[]): string | undefined {
  const found = lines.join("\n").match(/https:\/\/[^\s"'<>]+/g);
  return found?.at(-1);
}
