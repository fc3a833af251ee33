package client_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

func (f *fake) Retry(_ context.Context, _, id string, newest bool) (host.Fork, error) {
	steps := uint64(1)
	if newest {
		steps = 2
	}
	return host.Fork{
		Run:  host.Run{HandlerID: id, RunID: "r2", Status: host.StatusRunning, Steps: steps},
		Anew: []host.Renewed{{Kind: host.RenewedResource, Step: "s", Resource: "web"}},
	}, f.err
}

var departure = host.Departure{HandlerID: "h", RunID: "r", Version: "old", Code: host.Incompatible, Message: "no", Step: "s", Call: 2, Import: "sleep"}

func (f *fake) Migrate(_ context.Context, req host.MigrateRequest) (host.Migration, error) {
	m := host.Migration{Workflow: req.Workflow, Version: "new", Checked: req.Limit, Fit: 2, Running: []string{"busy " + req.HandlerID}, Departed: []host.Departure{departure}}
	if !req.DryRun {
		m.Moved = 2
	}
	if req.AfterHandler == "" {
		m.NextStarted, m.NextHandler = 3, "h3"
	}
	return m, f.err
}

func TestRetry(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	for _, newest := range []bool{false, true} {
		rec, anew, err := c.Retry(t.Context(), "h/1", newest)
		if err != nil || rec.HandlerID != "h/1" || rec.RunID != "r2" || len(anew) != 1 || anew[0].Resource != "web" {
			t.Errorf("Retry = %+v, %+v, %v", rec, anew, err)
		}
	}
	f.err = host.Errorf(host.CodeConflict, "it has not failed")
	if _, _, err := c.Retry(t.Context(), "h", false); errorOf(t, err).Message != "it has not failed" {
		t.Errorf("%v", err)
	}
}

func TestMigrate(t *testing.T) {
	f := &fake{}
	c := serve(t, f, nil)
	m, err := c.Migrate(t.Context(), client.MigrateRequest{Workflow: "w", DryRun: true, Limit: 7, HandlerID: `a"b`})
	if err != nil || m.Workflow != "w" || m.Version != "new" || m.Checked != 7 || m.Fit != 2 || m.Moved != 0 || m.Running[0] != `busy a"b` || !reflect.DeepEqual(m.Departed, []host.Departure{departure}) || m.Next == "" {
		t.Fatalf("%+v, %v", m, err)
	}
	if m, err = c.Migrate(t.Context(), client.MigrateRequest{Workflow: "w", Cursor: m.Next}); err != nil || m.Moved != 2 || m.Next != "" || m.Checked != 100 {
		t.Errorf("%+v, %v", m, err)
	}
	f.err = host.Errorf(host.CodeNotFound, "Workflow not found")
	if _, err = c.Migrate(t.Context(), client.MigrateRequest{Workflow: "w"}); errorOf(t, err).Code != host.CodeNotFound {
		t.Errorf("%v", err)
	}
}
