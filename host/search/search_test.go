package search_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

func TestParseSearch(t *testing.T) {
	tests := []struct {
		text string
		want []host.SearchTerm
	}{
		{"", nil},
		{"Error", []host.SearchTerm{{Word: "error"}}},
		{"  time-out \t OF\nstep", []host.SearchTerm{{Word: "time"}, {Word: "out"}, {Word: "of"}, {Word: "step"}}},
		{"dead* DEAD* dead", []host.SearchTerm{{Word: "dead", Prefix: true}, {Word: "dead"}}},
		{`"a" OR NOT b NEAR(c) words:d ^e {f}`, nil}, // nine words
		{`NOT "b" OR`, []host.SearchTerm{{Word: "not"}, {Word: "b"}, {Word: "or"}}},
		{"-5 3.25", []host.SearchTerm{{Word: "5"}, {Word: "3"}, {Word: "25"}}},
		{"ΣΑΣ σας Straße", []host.SearchTerm{{Word: "σασ"}, {Word: "straße"}}},
		{"日本*", []host.SearchTerm{{Word: "日本", Prefix: true}}},
		{strings.Repeat("x", 100), []host.SearchTerm{{Word: strings.Repeat("x", 64)}}},
	}
	for _, tt := range tests {
		got, err := search.Parse(tt.text)
		if tt.want == nil && tt.text != "" {
			if host.CodeOf(err) != host.CodeInvalidArgument {
				t.Errorf("ParseSearch(%q) = %v, %v", tt.text, got, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("ParseSearch(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
	}
	for _, bad := range []string{" ", "*", "!?", "ab*", "\xff", "a\xffb", strings.Repeat("a ", 200), "a b c d e f g h i"} {
		if got, err := search.Parse(bad); host.CodeOf(err) != host.CodeInvalidArgument {
			t.Errorf("ParseSearch(%q) = %v, %v", bad, got, err)
		}
	}
}

func TestWords(t *testing.T) {
	body, err := abi.EncodeValue(map[string]any{
		"Answer": "Forty-two\nis it", "list": []any{int64(-7), 2.5, true, nil, []byte("hidden"), map[string]any{"deep_er": uint64(1)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := host.Run{
		Status: host.StatusFailed, ErrorCode: "bad_input", Error: "No such FILE", Result: &host.StreamEvent{Type: "Report", Body: body},
	}
	want := []string{"1", "2", "5", "7", "answer", "bad", "deep", "er", "file", "forty", "input", "is", "it", "list", "no", "report", "such", "two"}
	if got := search.Words(&r); !slices.Equal(got, want) {
		t.Errorf("Words = %q, want %q", got, want)
	}
	r.Result.Base = true
	if slices.Contains(search.Words(&r), "report") {
		t.Error("the type of the runtime's own event is a word")
	}
	for text, want := range map[string]bool{
		"file": true, "FILE such": true, "fil": false, "fil*": true, "forty two": true, "forty three": false, "filed*": false, "zzz*": false, "hidden": false,
	} {
		terms, err := search.Parse(text)
		if err != nil || search.Matches(search.Words(&r), terms) != want {
			t.Errorf("%q matches: %t, %v", text, !want, err)
		}
	}
	r.Status = host.StatusRunning
	if got := search.Words(&r); got != nil {
		t.Errorf("words of a running run = %q", got)
	}
}

// TestWordsAreBounded: of a long text the beginning counts, cut between characters.
func TestWordsAreBounded(t *testing.T) {
	for pad := range 5 {
		r := host.Run{Status: host.StatusFailed, Error: strings.Repeat("x", pad) + strings.Repeat(" é", search.MaxText) + " last"}
		for _, w := range search.Words(&r) {
			if !utf8.ValidString(w) || w == "last" {
				t.Errorf("word %q", w)
			}
		}
		if !slices.Contains(search.Words(&r), "é") {
			t.Errorf("words = %q", search.Words(&r))
		}
	}
	r := host.Run{Status: host.StatusFailed, Error: "a\xffb"}
	if got := search.Words(&r); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("words of broken text = %q", got)
	}
}

// FuzzSearch: whatever is searched for is refused, or finds a run that has it as its
// error (but for what a word is too long for).
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"a", "time out*", `"x" OR y`, "\u0130stanbul", "ſt", "e\u0301", "日本*", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		terms, err := search.Parse(text)
		if err != nil {
			if host.CodeOf(err) != host.CodeInvalidArgument {
				t.Fatal(err)
			}
			return
		}
		r := host.Run{Status: host.StatusFailed, Error: text}
		if !search.Matches(search.Words(&r), terms) {
			t.Errorf("%q does not find itself: %+v in %q", text, terms, search.Words(&r))
		}
	})
}
