import { expect, test } from "weft/test";
import { chunks, lines, ranked, words } from "./words";

test("chunks have whole lines", () => {
  expect(chunks("a\nb\nc", 2)).toEqual(["a\nb\n", "c"]);
  expect(chunks("", 2)).toEqual([]);
});

test("the last line may lack its end", () => {
  for (const [text, n] of [["", 0], ["a", 1], ["a\n", 1], ["\n", 1], ["a\nb", 2]] as const) expect(lines(text)).toBe(n);
});

test("words have letters", () => {
  expect(words("don't 'tis '' 12")).toEqual(new Map([["don't", 1], ["'tis", 1]]));
  expect(words("\u0130 \u03a3\u03c2")).toEqual(new Map([["i", 1], ["\u03c3\u03c2", 1]]));
});

test("frequent words come first", () => {
  expect(ranked(new Map([["b", 1], ["a", 1], ["z", 2]]))).toEqual([["z", 2], ["a", 1], ["b", 1]]);
});
