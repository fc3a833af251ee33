package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// scene is one of testdata/scenes.json of the project, which says what comes of it on a
// server.
type scene struct {
	Name  string
	Start map[string]any
	Post  []struct {
		Waiter, Type string
		Event        struct {
			Type  string
			Value map[string]any
		}
		Cancel bool
	}
	Result      any
	Error, Code string
	Stream      []struct {
		Type  string
		Value map[string]any
	}
	Outside bool
}

// The scenes come out natively as on a server.
func TestScenes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "scenes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var scenes []scene
	if err := json.Unmarshal(text, &scenes); err != nil || len(scenes) < 40 {
		t.Fatalf("%d scenes: %v", len(scenes), err)
	}
	for i := range scenes {
		if s := &scenes[i]; !s.Outside { // the service is a server's
			t.Run(s.Name, s.play)
		}
	}
}

func (s *scene) play(t *testing.T) {
	run, err := wefttest.NewSession().Run(whole(s.Start))
	for _, c := range s.Post {
		if name := c.Waiter + c.Type; !strings.Contains(strings.Join(run.Waiting(), " "), name) {
			t.Fatalf("it waits for %q, not for %s", run.Waiting(), name)
		}
		if c.Cancel {
			_ = run.Cancel()
			continue
		}
		if err = run.Post(c.Event.Type, whole(c.Event.Value)); err != nil {
			t.Fatal(err)
		}
	}
	if err == nil && !run.Ended {
		err = run.Advance(time.Minute) // what waits, and is not answered
	}
	var failure *wefttest.Failure
	switch {
	case s.Error != "":
		if !errors.As(err, &failure) || !strings.Contains(failure.Message, s.Error) || s.Code != "" && failure.Code != s.Code {
			t.Errorf("it fails with %v, want %s", err, s.Error)
		}
	case !reflect.DeepEqual(plain(t, run.Result), s.Result):
		t.Errorf("it gives %v (%v), want %v", run.Result, err, s.Result)
	}
	s.stream(t, run)
}

// stream compares what steps have written; the end of a run is a server's.
func (s *scene) stream(t *testing.T, run *wefttest.Run) {
	i := 0
	for _, want := range s.Stream {
		if want.Type == "StopEvent" || strings.HasPrefix(want.Type, "Workflow") {
			return
		}
		if i >= len(run.Stream) || run.Stream[i].Type != want.Type || !reflect.DeepEqual(plain(t, run.Stream[i].Body), any(want.Value)) {
			t.Errorf("it streams %v, want %v", run.Stream, want)
		}
		i++
	}
}

// whole makes integers of the numbers that JSON has read.
func whole(fields map[string]any) map[string]any {
	for key, v := range fields {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			fields[key] = int64(f)
		}
	}
	return fields
}

// plain is a value as JSON reads it.
func plain(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
