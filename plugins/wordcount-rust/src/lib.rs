//! Wordcount counts the words of a text of any size: it splits the text in
//! chunks, counts these side by side and merges the counts.

mod words;

use std::collections::HashMap;

use weft::prelude::*;

use words::words;

/// Holds the text and how to cut it.
#[derive(StartEvent)]
struct StartEvent {
    /// the text to count
    text: String,
    /// lines in a chunk
    #[weft(default = 200, min = 1)]
    chunk_lines: u64, // a usize has 32 bits in a guest
    /// how many of the most frequent words to give
    #[weft(default = 10, min = 0)]
    top: u64,
}

/// A part of the text: some whole lines.
#[derive(Event)]
struct ChunkEvent {
    text: String,
    top: u64, // handed on to the last step
}

/// What one chunk holds.
#[derive(Event)]
struct CountedEvent {
    lines: usize,
    counts: Vec<WordCount>,
    top: u64,
}

/// How often a word occurs. A tuple is a list: `["word", 3]`.
type WordCount = (String, u64);

/// The run's result.
#[derive(Data, Debug, PartialEq)]
struct Summary {
    lines: usize,
    words: u64,
    distinct: usize,
    top: Vec<WordCount>,
}

#[step]
fn split(_: &Context, ev: StartEvent) -> Result<Vec<ChunkEvent>> {
    let chunk = |text: &str| ChunkEvent {
        text: text.to_owned(),
        top: ev.top,
    };
    Ok(chunks(&ev.text, ev.chunk_lines).map(chunk).collect())
}

#[step(workers = 8)]
fn count(_: &Context, ev: ChunkEvent) -> Result<CountedEvent> {
    Ok(CountedEvent {
        lines: ev.text.lines().count(),
        counts: ranked(words(&ev.text)),
        top: ev.top,
    })
}

#[step]
fn merge(_: &Context, all: Vec<CountedEvent>) -> Result<Stop> {
    Ok(Stop::new(summarize(all)))
}

/// Cuts a text after every n lines.
fn chunks(text: &str, n: u64) -> impl Iterator<Item = &str> {
    let n = n.try_into().unwrap_or(usize::MAX);
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.split_inclusive('\n').take(n).map(str::len).sum();
        let (chunk, after) = rest.split_at(end);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Adds up the counts of all chunks.
fn summarize(all: Vec<CountedEvent>) -> Summary {
    let mut lines = 0;
    let mut top = 0;
    let mut total = HashMap::new();
    for chunk in all {
        lines += chunk.lines;
        top = chunk.top;
        for (word, n) in chunk.counts {
            *total.entry(word).or_default() += n;
        }
    }
    Summary {
        lines,
        words: total.values().sum(),
        distinct: total.len(),
        top: {
            let mut ranked = ranked(total);
            ranked.truncate(top.try_into().unwrap_or(usize::MAX));
            ranked
        },
    }
}

/// Returns the words by falling counts, and words with equal counts in alphabetical
/// order.
fn ranked(counts: HashMap<String, u64>) -> Vec<WordCount> {
    let mut list: Vec<_> = counts.into_iter().collect();
    list.sort_unstable_by(|(a, m), (b, n)| n.cmp(m).then_with(|| a.cmp(b)));
    list
}

workflow!("wordcount-rust", steps = [split, count, merge]);

#[cfg(test)]
mod tests {
    use super::*;
    use weft::testing::Session;

    #[test]
    fn chunks_are_the_text() {
        for text in ["", "a", "a\n", "a\nb\nc", "\n\n\n", "a\nb\nc\nd\n"] {
            for n in 1..=4_usize {
                let list: Vec<_> = chunks(text, n as u64).collect();
                assert_eq!(list.concat(), text);
                for (i, chunk) in list.iter().enumerate() {
                    let lines = chunk.lines().count();
                    let last = i + 1 == list.len();
                    assert!(
                        lines == n || last && (1..n).contains(&lines),
                        "{text:?} by {n}"
                    );
                }
            }
        }
    }

    #[test]
    fn ranks() {
        let counts = [("b", 2), ("a", 2), ("ä", 2), ("c", 3), ("z", 1)];
        let counts = counts.map(|(word, n)| (word.to_owned(), n));
        let order: Vec<_> = ranked(counts.into()).into_iter().map(|(w, _)| w).collect();
        assert_eq!(order, ["c", "a", "b", "ä", "z"]);
    }

    /// The result is the same however the text is cut.
    #[test]
    fn the_workflow() {
        let text = "To be, or not to be:\nthat is the question.\n\nTo die - to sleep,";
        let want = Summary {
            lines: 4,
            words: 14,
            distinct: 10,
            top: [("to", 4), ("be", 2), ("die", 1)]
                .map(|(w, n)| (w.into(), n))
                .into(),
        };
        for chunk_lines in 1..=5 {
            let start = StartEvent {
                text: text.into(),
                chunk_lines,
                top: 3,
            };
            let run = Session::new(&WORKFLOW).run(&start).unwrap();
            assert_eq!(run.result::<Summary>().unwrap(), want, "by {chunk_lines}");
        }
    }

    #[test]
    fn no_text() {
        let start = Value::map([("text", "".into())]);
        let run = Session::new(&WORKFLOW).run(&start).unwrap();
        let summary: Summary = run.result().unwrap();
        assert_eq!((summary.lines, summary.words, summary.top), (0, 0, vec![]));
    }
}
