// Wordcount counts the words of a text of any size: it splits the text into chunks,
// counts them concurrently and merges the counts.
import { event, result, startEvent, step, Stop, t, workflow } from "weft";
import { chunks, lines, ranked, words } from "./words";

// Holds the text and how to split it.
const Start = startEvent("StartEvent", {
  text: t.string().doc("the text to count"),
  chunk_lines: t.integer().default(200).min(1).doc("lines in a chunk"),
  top: t.integer().default(10).min(0).doc("how many of the most frequent words to give"),
});

// A part of the text: some whole lines.
const Chunk = event("ChunkEvent", { text: t.string(), top: t.integer() }); // top is passed to the last step

// The counts of one chunk: how often each word occurs, as ["word", 3].
const Counted = event("CountedEvent", {
  lines: t.integer(),
  counts: t.array(t.tuple(t.string(), t.integer())),
  top: t.integer(),
});

export default workflow("wordcount-ts", {}, [
  step("split", Start, [Chunk], (ctx, { text, chunk_lines, top }) => chunks(text, chunk_lines).map((text) => Chunk({ text, top }))),

  step("count", Chunk, Counted, (ctx, { text, top }) => Counted({ lines: lines(text), counts: ranked(words(text)), top }), { workers: 8 }),

  // Adds up the counts of all chunks.
  step("merge", [Counted], Stop, (ctx, all) => {
    const total = new Map<string, number>();
    let lines = 0, count = 0, top = 0;
    for (const chunk of all) {
      top = chunk.top;
      lines += chunk.lines;
      for (const [word, n] of chunk.counts) {
        count += n;
        total.set(word, (total.get(word) ?? 0) + n);
      }
    }
    return result({ lines, words: count, distinct: total.size, top: ranked(total).slice(0, top) });
  }),
]);
