// Days as the statistics name them: `2026-01-02`, in UTC.

/** Every day between the first and the last, also those without turns. */
export function everyDay(days: string[]): string[] {
  const sorted = [...days].sort();
  const all: string[] = [];
  const last = sorted.at(-1);
  for (let day = sorted[0]; day !== undefined && last !== undefined && day <= last && all.length < 400; ) {
    all.push(day);
    day = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
  }
  return all;
}
