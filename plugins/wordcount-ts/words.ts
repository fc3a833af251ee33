// The work on texts, without a workflow.

/** Splits a text after every n lines. */
export function chunks(text: string, n: number): string[] {
  const list: string[] = [];
  for (let from = 0, to = 0; from < text.length; from = to) {
    for (let i = 0; i < n && to < text.length; i++) to = text.indexOf("\n", to) + 1 || text.length;
    list.push(text.slice(from, to));
  }
  return list;
}

/** Counts the lines of a text; the last one may lack its end. */
export const lines = (text: string) => text.split("\n").length - (text === "" || text.endsWith("\n") ? 1 : 0);

/**
 * Counts the words of a text, in lower case. A word is a sequence of letters and
 * apostrophes that has a letter.
 */
export function words(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.matchAll(/[\p{L}']+/gu)) {
    if (/^'+$/.test(word)) continue;
    const lower = small(word);
    counts.set(lower, (counts.get(lower) ?? 0) + 1);
  }
  return counts;
}

/** small gives each letter in lower case by itself, wherever it stands in the word. */
const small = (word: string) =>
  /^[a-z']*$/i.test(word) ? word.toLowerCase() : Array.from(word, (c) => String.fromCodePoint(c.toLowerCase().codePointAt(0)!)).join("");

/** Returns the words by falling counts, and words with equal counts in the order of their letters' numbers. */
export const ranked = (counts: Map<string, number>): [string, number][] =>
  [...counts].sort(([a, m], [b, n]) => n - m || compare(a, b));

function compare(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return (a.codePointAt(i) ?? -1) - (b.codePointAt(i) ?? -1);
}
