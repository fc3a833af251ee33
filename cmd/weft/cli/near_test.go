package cli

import "testing"

func TestNear(t *testing.T) {
	known := []string{"accumulator", "counter", "counter-race", "wordcount"}
	for name, want := range map[string]string{
		"coutner": "counter", "Counter": "counter", "wordcuont": "wordcount", "accum": "accumulator", "race": "counter-race",
		"zebra": "", "": "", "n": "",
	} {
		got := near(name, known)
		if want == "" && len(got) > 0 || want != "" && (len(got) == 0 || got[0] != want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
