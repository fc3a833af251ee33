package cases

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	tests := []struct {
		name, want, have string
		whole            bool
		paths            string // of the differences
	}{
		{"same", `{"a": [1, "x", null, true]}`, `{"a":[1.0,"x",null,true]}`, true, ""},
		{"numbers of one value", `100`, `1e2`, true, ""},
		{"large numbers", `9007199254740993`, `9007199254740992`, true, "r"},
		{"a number that is not a value to compute", `1e999999999`, `1`, true, "r"},
		{"more keys", `{"a": 1}`, `{"a": 1, "b": 2}`, true, "r.b"},
		{"more keys, of a part", `{"a": 1}`, `{"a": 1, "b": 2}`, false, ""},
		{"fewer keys", `{"a": 1, "b": {"c": 1}}`, `{"a": 1}`, false, "r.b"},
		{"within", `{"b": {"c": [1, 2]}}`, `{"b": {"c": [1, 3]}}`, false, "r.b.c.1"},
		{"a shorter list", `[1, 2]`, `[1]`, false, "r.1"},
		{"a longer list", `[1]`, `[1, 2]`, false, "r.1"},
		{"types", `"1"`, `1`, true, "r"},
		{"an object for a list", `[]`, `{}`, true, "r"},
		{"nothing", `1`, ``, true, "r"},
	}
	for _, tt := range tests {
		var paths []string
		for _, d := range different("r", json.RawMessage(tt.want), json.RawMessage(tt.have), tt.whole) {
			path, _, _ := strings.Cut(d, ":")
			paths = append(paths, path)
		}
		if got := strings.Join(paths, " "); got != tt.paths {
			t.Errorf("%s: differs at %q, want %q", tt.name, got, tt.paths)
		}
	}
	if n := len(different("", json.RawMessage(`[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]`), json.RawMessage(`[]`), true)); n != mostDifferences+1 {
		t.Errorf("%d differences are shown", n)
	}
}

func TestMissingEvents(t *testing.T) {
	event := func(name, fields string) Event {
		return Event{Type: name, Fields: json.RawMessage(fields)}
	}
	came := []Event{event("A", `{"i":1}`), event("B", `{}`), event("A", `{"i":2,"j":0}`)}
	for _, tt := range []struct {
		name string
		want []Event
		text string
	}{
		{"none", nil, ""},
		{"all", came, ""},
		{"some, by some fields", []Event{{Type: "B"}, event("A", `{"i":2}`)}, ""},
		{"the wrong order", []Event{{Type: "B"}, event("A", `{"i":1}`)}, "event 2, A {\"i\":1}, did not occur after event 1"},
		{"twice", []Event{{Type: "B"}, {Type: "B"}}, "event 2, B, did not occur"},
	} {
		got := strings.Join(absent(tt.want, came), "\n")
		if (got == "") != (tt.text == "") || !strings.Contains(got, tt.text) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
