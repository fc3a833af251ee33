package jsonfile_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/jsonfile"
)

func TestTokensAndTheirPlaces(t *testing.T) {
	const text = "{\n  \"ä\": [1, true],\n  \"b\" : null}"
	r := jsonfile.NewReader([]byte(text))
	for {
		tok, at, err := r.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Problem(at, "", "%v", tok)
	}
	const want = `9 problems:
  - line 1, column 1: {
  - line 2, column 3: ä
  - line 2, column 8: [
  - line 2, column 9: 1
  - line 2, column 12: true
  - line 2, column 16: ]
  - line 3, column 3: b
  - line 3, column 9: <nil>
  - line 3, column 13: }`
	if err := r.Err(); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestTextsThatAreNotJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "EOF",
		"{":                "EOF",
		"{\n \"a\" 1":      "no JSON: invalid character '1' after object key",
		"{\"a\": \"half":   "line 1, column 12: the text ends in the middle",
		"[1, 2":            "EOF",
		"[1, nul":          "line 1, column 8: the text ends in the middle",
		"[1, x]":           "no JSON: invalid character 'x' looking for beginning of value",
		"{\"a\": 1, \"b\"": "EOF",
	} {
		r := jsonfile.NewReader([]byte(text))
		var err error
		for err == nil {
			_, _, err = r.Token()
		}
		if !strings.HasSuffix(err.Error(), want) || !strings.HasPrefix(err.Error(), "line ") && want != "EOF" {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestManyProblems(t *testing.T) {
	r := jsonfile.NewReader([]byte("{}"))
	if err := r.Err(); err != nil {
		t.Errorf("no problem is %v", err)
	}
	for i := range 80 {
		r.Problem(0, "a.b", "%d", i)
	}
	r.Stop(r.Fault(1, "the end"))
	var err *jsonfile.Error
	if !errors.As(r.Err(), &err) || len(err.Problems) != 51 || err.Problems[0] != "line 1, column 1: a.b: 0" || err.Problems[50] != "line 1, column 2: the end" {
		t.Errorf("got %v", err)
	}
	one := &jsonfile.Error{Problems: []string{"line 1"}}
	if got := fmt.Sprint(one); got != "line 1" || strings.Contains(got, "problems") {
		t.Errorf("one problem is %q", got)
	}
}
