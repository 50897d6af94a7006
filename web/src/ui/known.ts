// Looking up a word that an agent wrote: `constructor` and its like are in no table.

export function known<T>(table: Record<string, T>, word: string): T | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}
