package codec

import (
	"reflect"
	"strings"
	"testing"
)

func TestSchema(t *testing.T) {
	type tree struct{ Kids []tree }
	type all struct {
		N       int      `min:"0" max:"9" doc:"how many"`
		Rate    float64  `default:"0.5" min:"0.1"`
		Mode    string   `enum:"edit,get-set"`
		Note    string   `weft:",omitempty"`
		Size    uint32   `default:"1"`
		Inner   inner    `doc:"nested"`
		Tags    []string `weft:"labels"`
		Counts  map[string]int
		Any     any
		Bytes   []byte
		Tree    tree
		Maybe   []*int
		Pointer *bool
	}
	p, err := Of(reflect.TypeOf(all{}))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := p.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := Unmarshal(encode(t, schema), &got); err != nil {
		t.Fatal(err)
	}
	type o = map[string]any
	kids := o{"type": "array", "items": o{"type": "object"}}
	want := o{
		"type":     "object",
		"required": []any{"n", "any", "mode", "tree", "bytes", "inner", "maybe", "counts", "labels"},
		"properties": o{
			"n":       o{"type": "integer", "minimum": int64(0), "maximum": int64(9), "description": "how many"},
			"rate":    o{"type": "number", "default": 0.5, "minimum": 0.1},
			"mode":    o{"type": "string", "enum": []any{"edit", "get-set"}},
			"note":    o{"type": "string"},
			"size":    o{"type": "integer", "minimum": int64(0), "default": int64(1)},
			"inner":   o{"type": "object", "properties": o{"x": o{"type": "integer"}, "y": o{"type": "number"}}, "required": []any{"x"}, "description": "nested"},
			"labels":  o{"type": "array", "items": o{"type": "string"}},
			"counts":  o{"type": "object", "additionalProperties": o{"type": "integer"}},
			"any":     o{},
			"bytes":   o{},
			"tree":    o{"type": "object", "properties": o{"kids": kids}, "required": []any{"kids"}},
			"maybe":   o{"type": "array"},
			"pointer": o{"type": "boolean"},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestTagsThatDoNotFit(t *testing.T) {
	for _, test := range []struct {
		v    any
		want string
	}{
		{struct {
			A string `min:"1"`
		}{}, "only numbers take a min"},
		{struct {
			A int `max:"x"`
		}{}, "not an integer"},
		{struct {
			A int `enum:"1,2"`
		}{}, "only text takes an enum"},
	} {
		p, err := Of(reflect.TypeOf(test.v))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Schema(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: error %v, want %q", test.v, err, test.want)
		}
	}
}
