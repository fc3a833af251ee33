package main

import (
	"reflect"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestNotesAreTaken(t *testing.T) {
	session := wefttest.NewSession()
	run, err := session.Run(map[string]any{"query": " to  be or not"})
	if err != nil {
		t.Fatal(err)
	}
	var got Output
	if err := wefttest.Into(run.Result, &got); err != nil {
		t.Fatal(err)
	}
	now := seconds(session.Clock)
	want := Output{"Processed:  to  be or not", Metadata{
		StartTime: now, StepsExecuted: []string{"process", "finalize"}, TokenCount: 4, EndTime: now,
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	var kept Metadata
	if err := session.Read("metadata", &kept); err != nil || !reflect.DeepEqual(kept, want.Metadata) {
		t.Errorf("state keeps %+v (%v)", kept, err)
	}
}

func TestTimesAreFloats(t *testing.T) {
	run, err := wefttest.NewSession().Run(map[string]any{"query": ""})
	if err != nil {
		t.Fatal(err)
	}
	metadata := run.Result.(map[string]any)["metadata"].(map[string]any)
	for _, key := range []string{"start_time", "end_time", "total_time"} {
		if _, ok := metadata[key].(float64); !ok {
			t.Errorf("%s is %T", key, metadata[key])
		}
	}
}
