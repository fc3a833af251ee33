package main

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]map[string]int{
		"":                             {},
		"The the THE":                  {"the": 3},
		"don't 'tis' '' ' 12 -":        {"don't": 1, "'tis'": 1},
		"Stra\u00dfe \u00c4\u00d6 x1y": {"stra\u00dfe": 1, "\u00e4\u00f6": 1, "x": 1, "y": 1},
		"\u0130 \u2160 \u4e16\u754c":   {"i": 1, "\u4e16\u754c": 1}, // the Roman numeral is not a letter
		"a\u0301":                      {"a": 1},                    // nor is a combining mark
		"\xff a\xffb":                  {"a": 1, "b": 1},
	} {
		if got := words(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "\n": 1, "a\nb": 2, "\n\n": 2, "a\r\nb\n": 2} {
		if got := lines(text); got != want {
			t.Errorf("%q: %d lines, want %d", text, got, want)
		}
	}
}

func TestChunksAreTheText(t *testing.T) {
	for _, text := range []string{"", "a", "a\n", "a\nb\nc", "\n\n\n", "a\nb\nc\nd\n"} {
		for n := 1; n <= 4; n++ {
			list := chunks(text, n)
			if joined := strings.Join(list, ""); joined != text {
				t.Errorf("%q in chunks of %d is %q", text, n, joined)
			}
			for i, chunk := range list {
				if got := lines(chunk); got != n && i+1 < len(list) || got > n || got == 0 {
					t.Errorf("%q in chunks of %d: chunk %d has %d lines", text, n, i, got)
				}
			}
		}
	}
}

func TestRanked(t *testing.T) {
	got := ranked(map[string]int{"b": 2, "a": 2, "\u00e4": 2, "c": 3, "z": 1})
	want := []WordCount{{Word: "c", Count: 3}, {Word: "a", Count: 2}, {Word: "b", Count: 2}, {Word: "\u00e4", Count: 2}, {Word: "z", Count: 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The result is the same however the text is cut.
func TestWorkflow(t *testing.T) {
	const text = "To be, or not to be:\nthat is the question.\n\nTo die - to sleep,"
	want := map[string]any{"lines": int64(4), "words": int64(14), "distinct": int64(10),
		"top": []any{[]any{"to", int64(4)}, []any{"be", int64(2)}, []any{"die", int64(1)}}}
	for lines := 1; lines <= 5; lines++ {
		run, err := wefttest.NewSession().Run(map[string]any{"text": text, "chunk_lines": lines, "top": 3})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(run.Result, any(want)) {
			t.Errorf("in chunks of %d: got  %v\nwant %v", lines, run.Result, want)
		}
	}
}

func TestNoText(t *testing.T) {
	run, err := wefttest.NewSession().Run(map[string]any{"text": ""})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"lines": int64(0), "words": int64(0), "distinct": int64(0), "top": []any{}}
	if !reflect.DeepEqual(run.Result, any(want)) {
		t.Errorf("got %v", run.Result)
	}
}
