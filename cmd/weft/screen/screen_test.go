package screen

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text  string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 3, "äö…"}, {"ab", 1, "…"}, {"ab", 0, ""},
		{"漢字", 4, "漢字"}, {"漢字かな", 7, "漢字か…"}, {"漢字かな", 6, "漢字…"}, {"🚀🚀", 3, "🚀…"}, {"e\u0301a", 2, "e\u0301a"}} {
		if got := Cut(tt.text, tt.width); got != tt.want {
			t.Errorf("cut(%q, %d) = %q, want %q", tt.text, tt.width, got, tt.want)
		}
	}
}

func TestTimesAndSizes(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{
		"now": -time.Hour, "59s ago": 59 * time.Second, "1m ago": 119 * time.Second, "47h ago": 47*time.Hour + time.Minute, "3d ago": 80 * time.Hour,
	} {
		if got := Ago(now.Add(-d), now); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for want, d := range map[string]time.Duration{
		"0s": -1, "750µs": 750 * time.Microsecond, "12ms": 12 * time.Millisecond, "1.50s": 1500 * time.Millisecond, "2m05s": 125 * time.Second, "3h00m": 3 * time.Hour,
	} {
		if got := Span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
	for want, n := range map[string]int{"999 B": 999, "1.5 kB": 1500, "2.9 MB": 2_900_000} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got, want := Printable("a\x1b[2Jb\nc\u202e\u009b\td"), `a\u001b[2Jb\nc\u202e\u009b d`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	in := "{\n  \"a\": \"x\u009b\u202e\U000e0001ß\"\n}"
	shown := PrintableJSON(in)
	if strings.ContainsAny(shown, "\u009b\u202e\U000e0001") || !strings.Contains(shown, "ß") {
		t.Errorf("%q", shown)
	}
	var before, after any
	if err := json.Unmarshal([]byte(in), &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(shown), &after); err != nil {
		t.Fatal(err)
	}
	if before.(map[string]any)["a"] != after.(map[string]any)["a"] {
		t.Errorf("%q means something else than %q", shown, in)
	}
}

// Columns stay aligned with ideographs, emoji and combining marks, whether or not the
// text fits.
func TestWideCharactersKeepColumns(t *testing.T) {
	table := &Table{Columns: []Column{{Title: "NAME", Elastic: true}, {Title: "STEPS", Right: true}, {Title: "END"}}}
	for _, name := range []string{"plain", "注文の確認", "배송 추적", "🚀 launch", "🇯🇵 e\u0301te\u0301", "ａｂｃ"} {
		table.Add(name, "3", "end")
	}
	for _, cols := range []int{0, 80, 21, 20} {
		lines := strings.Split(strings.TrimSuffix(table.Render(Terminal{Cols: cols}), "\n"), "\n")
		want := Width(lines[0])
		for _, line := range lines {
			if Width(line) != want || cols > 0 && want > cols {
				t.Errorf("%d columns: %q takes %d, the titles %d", cols, line, Width(line), want)
			}
		}
	}
	var s Sheet
	s.Add("名前", "a")
	s.Add("status", "b")
	if got, want := s.Render(""), "名前    a\nstatus  b\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
