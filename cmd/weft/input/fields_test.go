package input

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/cmd/weft/cli"
)

// aSchema has a field of every kind that the command line distinguishes.
const aSchema = `{
	"title": "StartEvent", "type": "object", "required": ["n"],
	"$defs": {"Size": {"type": "integer"}, "Loop": {"$ref": "#/$defs/Loop"}, "Wide": {"anyOf": [{"$ref": "#/$defs/Wide"}, {"$ref": "#/$defs/Wide"}]}},
	"properties": {
		"text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "on": {"type": "boolean"},
		"list": {"type": "array", "items": {"type": "string"}}, "map": {"type": "object"},
		"opt": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "note": {"type": ["string", "null"]},
		"size": {"$ref": "#/$defs/Size"}, "both": {"allOf": [{"description": "d"}, {"type": "integer"}]},
		"any": {}, "open": true, "loop": {"$ref": "#/$defs/Loop"}, "wide": {"$ref": "#/$defs/Wide"}, "far": {"$ref": "http://127.0.0.1/x"}
	}}`

func TestFieldsAreReadByTheSchema(t *testing.T) {
	s, err := ReadSchema([]byte(aSchema))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ arg, want string }{
		{"text=3", `{"text":"3"}`},
		{"text=a=b:=c", `{"text":"a=b:=c"}`},
		{"text=<&>\"", `{"text":"<&>\""}`},
		{"text=", `{"text":""}`},
		{"text:=null", `{"text":null}`},
		{"n=3", `{"n":3}`},
		{"n= 3 ", `{"n":3}`},
		{"n=3.0", `{"n":3.0}`},
		{"n=18446744073709551615", `{"n":18446744073709551615}`},
		{"x=3", `{"x":3}`},
		{"x=-1.5e3", `{"x":-1.5e3}`},
		{"on=true", `{"on":true}`},
		{`list=["a", 1]`, `{"list":["a", 1]}`},
		{`map={"a":{}}`, `{"map":{"a":{}}}`},
		{"opt=7", `{"opt":7}`},
		{"opt=null", `{"opt":null}`},
		{"note=null", `{"note":"null"}`},
		{"size=4", `{"size":4}`},
		{"both=4", `{"both":4}`},
		{"any=4", `{"any":"4"}`},
		{"open=4", `{"open":"4"}`},
		{"loop=4", `{"loop":"4"}`},
		{"wide=4", `{"wide":"4"}`},
		{"far=4", `{"far":"4"}`},
		{"undeclared=4", `{"undeclared":"4"}`},
		{"undeclared:=4", `{"undeclared":4}`},
	}
	for _, tt := range tests {
		fields, err := Parse([]string{tt.arg})
		if err != nil {
			t.Errorf("%s: %v", tt.arg, err)
			continue
		}
		if got, err := Event(fields, s); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.arg, got, err, tt.want)
		}
	}
}

func TestWrongFieldsAreNamed(t *testing.T) {
	s, err := ReadSchema([]byte(aSchema))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ args, want string }{
		{"n", `"n" is neither key=value nor key:=JSON`},
		{"=3", "has no key"},
		{":=3", "has no key"},
		{"n:=", "not JSON"},
		{"text:=word", `text=text`},
		{"n=1 n=2", "field n is given twice"},
		{"n=three", "n=three: field n takes an integer, such as n=3"},
		{"n=1.5", "field n takes an integer"},
		{"n=", "field n takes an integer"},
		{"n=0x10", "field n takes an integer"},
		{"n=007", "field n takes an integer"},
		{"n=NaN", "field n takes an integer"},
		{`n="3"`, "field n takes an integer"},
		{"x=much", "field x takes a number, such as x=0.5"},
		{"on=yes", "field on takes a boolean, such as on=true"},
		{"list=a", `field list takes an array, such as 'list=["a","b"]'`},
		{"map=[]", `field map takes an object`},
		{"opt=x", "field opt takes an integer or null"},
		{"text=\xff", "not UTF-8"},
	}
	for _, tt := range tests {
		fields, err := Parse(strings.Fields(tt.args))
		if err == nil {
			_, err = Event(fields, s)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.args, err, tt.want)
		}
	}
}

func TestFilesAndStandardInput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a=b.txt")
	if err := os.WriteFile(file, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fields, err := FileFields(t.Context(), []string{"text=" + file}, "more", strings.NewReader("in\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Event(fields, nil); err != nil || string(got) != `{"text":"line\n","more":"in\n"}` {
		t.Errorf("%s, %v", got, err)
	}
	for _, tt := range []struct {
		files []string
		stdin string
		want  string
	}{
		{[]string{"text"}, "", "not key=PATH"},
		{[]string{"text="}, "", "not key=PATH"},
		{[]string{"text=-"}, "more", "one field only"},
		{[]string{"text=" + file + "x"}, "", "field text: open"},
	} {
		if _, err := FileFields(t.Context(), tt.files, tt.stdin, strings.NewReader("")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %q: %v; want %q", tt.files, tt.stdin, err, tt.want)
		}
	}
}

// Reading a terminal on which nobody types must end with Ctrl-C.
func TestStandardInputIsGivenUp(t *testing.T) {
	in, typist := io.Pipe()
	defer func() { _ = typist.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := FileFields(ctx, nil, "text", in); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestReadingIsBounded(t *testing.T) {
	if b, err := cli.ReadSome(strings.NewReader("1234"), "it", 4); err != nil || len(b) != 4 {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := cli.ReadSome(strings.NewReader("12345"), "it", 4); err == nil {
		t.Error("it reads more than the limit")
	}
}

func TestStraysAreToldWithWhatWasMeant(t *testing.T) {
	s, err := ReadSchema([]byte(aSchema))
	if err != nil {
		t.Fatal(err)
	}
	notes := Strays([]Field{{Key: "text"}, {Key: "texst"}, {Key: "colour"}}, s)
	if len(notes) != 2 || !strings.Contains(notes[0], `did you mean "text"`) || !strings.Contains(notes[1], "it has ") {
		t.Errorf("%q", notes)
	}
	if notes := Strays([]Field{{Key: "a"}}, &Schema{}); notes != nil {
		t.Errorf("without declared fields: %q", notes)
	}
}
