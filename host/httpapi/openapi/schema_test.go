package openapi

import (
	"encoding/json"
	"testing"

	"github.com/weftrun/weft/host/apiwire"
)

// TestFieldIsDescribed: a field of a struct is described by its tags alone.
func TestFieldIsDescribed(t *testing.T) {
	type record struct {
		apiwire.Record
		Weather string `json:"weather,omitempty" doc:"How the weather was."`
	}
	type body struct {
		_       struct{} `body:"closed"`
		Weather string   `json:"weather" api:"minLength=1,maxLength=9"`
		Before  string   `json:"before,omitempty"`
	}
	members := inline[record]()["properties"].(schema)
	for name, want := range map[string]string{
		"weather": `{"description":"How the weather was.","type":"string"}`,
		"paused":  `{"description":"The run queues what comes until it is resumed.","type":"boolean"}`,
		"blocked": `{"$ref":"#/components/schemas/Blocked","description":"Why the run cannot continue without help."}`,
		"result":  `{"anyOf":[{"$ref":"#/components/schemas/Envelope"},{"type":"null"}],"description":"What the run ended with; null before."}`,
	} {
		if got := text(t, members[name]); got != want {
			t.Errorf("%s is described as %s, want %s", name, got, want)
		}
	}
	const want = `{"additionalProperties":false,"description":"","properties":{` +
		`"before":{"anyOf":[{"type":"string"},{"type":"null"},{"const":""},{"maxProperties":0,"type":"object"}]},` +
		`"weather":{"maxLength":9,"minLength":1,"type":"string"}},"required":["weather"],"type":"object"}`
	if got := text(t, inline[body]()); got != want {
		t.Errorf("the body is described as %s", got)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
