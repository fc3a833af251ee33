// Wordcount counts the words of a text of any size: it splits the text into chunks,
// counts them concurrently and merges the counts.
package main

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent holds the text and how to split it.
type StartEvent struct {
	weft.Start
	Text       string `doc:"the text to count"`
	ChunkLines int    `default:"200" min:"1" doc:"lines in a chunk"`
	Top        int    `default:"10" min:"0" doc:"how many of the most frequent words to give"`
}

// ChunkEvent is a part of the text: some whole lines.
type ChunkEvent struct {
	Text string
	Top  int // passed to the last step
}

// CountedEvent holds the counts of one chunk.
type CountedEvent struct {
	Lines  int
	Counts []WordCount
	Top    int
}

// WordCount says how often a word occurs, as a list: ["word", 3].
type WordCount struct {
	weft.Tuple
	Word  string
	Count int
}

// Summary is the run's result.
type Summary struct {
	Lines    int
	Words    int
	Distinct int
	Top      []WordCount
}

func split(_ *weft.Context[weft.Untyped], ev StartEvent) ([]ChunkEvent, error) {
	var list []ChunkEvent
	for _, text := range chunks(ev.Text, ev.ChunkLines) {
		list = append(list, ChunkEvent{Text: text, Top: ev.Top})
	}
	return list, nil
}

func count(_ *weft.Context[weft.Untyped], ev ChunkEvent) (CountedEvent, error) {
	return CountedEvent{Lines: lines(ev.Text), Counts: ranked(words(ev.Text)), Top: ev.Top}, nil
}

func merge(_ *weft.Context[weft.Untyped], all []CountedEvent) (weft.Stop, error) {
	return weft.Result(summarize(all)), nil
}

// chunks splits a text after every n lines. The chunks share its memory.
func chunks(text string, n int) []string {
	var list []string
	for len(text) > 0 {
		end := 0
		for i := 0; i < n && end < len(text); i++ {
			end += lineLength(text[end:])
		}
		list = append(list, text[:end])
		text = text[end:]
	}
	return list
}

// lineLength returns the length of the first line, including its end.
func lineLength(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// lines counts the lines of a text; the last one may lack its end.
func lines(text string) int {
	n := strings.Count(text, "\n")
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// summarize adds up the counts of all chunks.
func summarize(all []CountedEvent) Summary {
	var s Summary
	var top int
	total := map[string]int{}
	for _, chunk := range all {
		top = chunk.Top
		s.Lines += chunk.Lines
		for _, w := range chunk.Counts {
			s.Words += w.Count
			total[w.Word] += w.Count
		}
	}
	s.Distinct = len(total)
	s.Top = ranked(total)[:min(top, len(total))]
	return s
}

// ranked returns the words by falling counts, and words with equal counts in alphabetical
// order.
func ranked(counts map[string]int) []WordCount {
	list := make([]WordCount, 0, len(counts))
	for word, n := range counts {
		list = append(list, WordCount{Word: word, Count: n})
	}
	slices.SortFunc(list, func(a, b WordCount) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Word, b.Word)
	})
	return list
}

func init() {
	weft.Define("wordcount",
		weft.Step("split", split),
		weft.Step("count", count, weft.Workers(8)),
		weft.Step("merge", merge))
}

func main() {}
