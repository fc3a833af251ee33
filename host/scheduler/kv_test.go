package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/store/memory"
)

// noKV is a resource of which nothing is kept.
type noKV struct{}

func (noKV) Operate(host.ResourceCall, kv.Space, kv.Data) kv.Answer {
	return kv.Answer{Err: &abi.Error{Code: "internal", Message: "not of the kind kv"}}
}

// kept is a resource that keeps numbers: "add" adds 1 and gives the sum, "see" gives it,
// "set" is refused unless the payload is the number there, to which it adds 1.
type kept struct {
	made int64
	sums []int64 // that adds were given
}

func (k *kept) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	return host.ResourceGrant{Mode: host.ResourceRepeat, Reads: []string{"see"}, Pool: decl.Name, InFlight: 2,
		Space: kv.Space{Tenant: user.Tenant, Resource: decl.Name, Made: k.made}}, nil
}

func (k *kept) Call(context.Context, host.ResourceCall) (abi.Raw, *abi.Error) {
	return nil, &abi.Error{Code: "internal", Message: "it is not called outside"}
}

func (k *kept) Operate(call host.ResourceCall, space kv.Space, data kv.Data) kv.Answer {
	item, found, err := data.Get("n")
	if err != nil || space.Resource != call.Resource {
		return kv.Answer{Err: &abi.Error{Code: "unavailable", Message: fmt.Sprint(err)}}
	}
	n := int64(0)
	if found {
		v, _ := abi.DecodeValue(item.Value)
		n, _ = v.(int64)
	}
	if call.Method == "see" {
		return kv.Answer{Value: must(abi.EncodeValue(n))}
	}
	if want, _ := abi.DecodeValue(call.Payload); call.Method == "set" && want != n {
		return kv.Answer{Err: &abi.Error{Code: "conflict", Message: "another was first"}}
	}
	sum := must(abi.EncodeValue(n + 1))
	k.sums = append(k.sums, n+1)
	return kv.Answer{Value: sum, Write: &kv.Item{Key: "n", Value: sum}}
}

// number reads what is kept.
func number(t *testing.T, s host.Store, space kv.Space) int64 {
	t.Helper()
	item, err := s.KVItem(t.Context(), space, "n")
	if errors.Is(err, host.ErrNotFound) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	v, _ := abi.DecodeValue(item.Value)
	n, _ := v.(int64)
	return n
}

// keptStory: at whatever commit the server ends, each piece of work has added once, to
// what is kept and to the state.
func keptStory() *story {
	k := &kept{}
	return &story{
		modules: map[string]string{"one": fmt.Sprintf(one, ` "resources": [{"name": "crm", "kind": "kv"}],`)}, want: map[string]int64{"s": 6},
		resource: k,
		guest: func(b *bench) func(context.Context, *call) (abi.StepOutput, error) {
			return working(func(g *call) error {
				if _, err := g.do(abi.ImportResource, []any{"crm", "add", nil}); err != nil {
					return err
				}
				b.commit()
				if err := increment(g, 1); err != nil {
					return err
				}
				if _, err := g.do(abi.ImportResource, []any{"crm", "add", nil}); err != nil {
					return err
				}
				return increment(g, 1)
			})
		},
		checkStore: func(t *testing.T, s host.Store) {
			if n := number(t, s, kv.Space{Tenant: "t", Resource: "crm"}); n != 6 {
				t.Errorf("what is kept was added to %d times, want 6", n)
			}
		},
	}
}

const adding = `{"abi": 1, "workflow": "two", "timeout": 60000000000, "events": {"Work": {}, "Done": {}},
  "resources": [{"name": "a", "kind": "kv"}, {"name": "b", "kind": "kv"}],
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Done"], "workers": 3, "retry": {"wait": {"fixed": 1000000000}, "stop": {"attempts": 5}}},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// A call sees what is in the queue before it, durable or not; nothing waits for a
// commit but those who look from outside.
func TestKVIsSeenBeforeItIsDurable(t *testing.T) {
	k := &kept{}
	b := &bench{tokens: 2, outside: k, seldom: 1000, modules: newSimModules(t, map[string]string{"two": adding})}
	b.guest = working(func(g *call) error {
		_, err := g.do(abi.ImportResource, []any{"a", "add", nil})
		return err
	})
	b.open(t)
	started := make(chan struct{})
	go func() {
		defer close(started)
		_, _ = b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h"})
	}()
	space := kv.Space{Tenant: "t", Resource: "a"}
	for len(k.sums) < 3 {
		for _, w := range b.step() {
			w()
		}
	}
	if fmt.Sprint(k.sums) != "[1 2 3]" || number(t, b.store, space) != 0 {
		t.Errorf("the sums are %v, the store has %d already", k.sums, number(t, b.store, space))
	}
	b.rest()
	<-started
	b.rest()
	if n := number(t, b.store, space); n != 3 || number(t, b.store, kv.Space{Tenant: "t", Resource: "b"}) != 0 {
		t.Errorf("the store has %d", n)
	}
	if leak := b.sched.Leak(); leak != "" {
		t.Error(leak)
	}
}

// A step that fails as another was first reads anew when it is tried again, and does
// not repeat what it has written.
func TestKVConflictReadsAnew(t *testing.T) {
	k := &kept{}
	b := &bench{tokens: 1, outside: k, modules: newSimModules(t, map[string]string{"two": adding})}
	disturbed := 0
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		switch g.in.Step {
		case "begin":
			return list(1), nil
		case "end":
			return stopEvent(), nil
		}
		if _, err := g.do(abi.ImportResource, []any{"b", "add", nil}); err != nil { // once, however often it is tried
			return abi.StepOutput{}, err
		}
		n, err := g.do(abi.ImportResource, []any{"a", "see", nil})
		if err != nil {
			return abi.StepOutput{}, err
		}
		if g.in.Run.Attempt <= 2 && disturbed < 2 { // somebody is between, and is told so by each attempt's own payload
			if _, err := g.do(abi.ImportResource, []any{"a", "add", g.in.Run.Attempt}); err != nil {
				return abi.StepOutput{}, err
			}
		}
		_, status, _, err := g.inv.Calls.Call(abi.ImportResource, must(abi.EncodeValue([]any{"a", "set", n})), g.clock)
		if err != nil {
			return abi.StepOutput{}, err
		}
		if status != abi.StatusOK {
			return abi.StepOutput{Err: &abi.Error{Code: status.Code(), Message: "outrun"}}, nil
		}
		return abi.StepOutput{Events: []abi.Event{{Type: "Done", Body: abi.EmptyMap}}}, nil
	}
	b.open(t)
	run := b.start("h", "s")
	for range 5 {
		b.rest()
		b.advance(time.Second)
	}
	b.rest()
	if got := b.status(run.RunID); got != host.StatusCompleted {
		t.Fatalf("the run is %s", got)
	}
	a, other := number(t, b.store, kv.Space{Tenant: "t", Resource: "a"}), number(t, b.store, kv.Space{Tenant: "t", Resource: "b"})
	if a != 3 || other != 1 {
		t.Errorf("a is %d, b %d", a, other)
	}
}

// brokenStore is a store whose commits fail for good from some point on.
type brokenStore struct {
	host.Store
	down bool
}

func (f *brokenStore) Append(ctx context.Context, b host.Batch) error {
	if f.down {
		return errors.New("the disk is gone")
	}
	return f.Store.Append(ctx, b)
}

// What was written in a commit that failed was never there: the next life does not see
// it, and counts each piece of work once.
func TestKVOfAFailedCommit(t *testing.T) {
	k := &kept{}
	store := &brokenStore{Store: memory.New()}
	b := &bench{tokens: 2, outside: k, store: store, now: time.Unix(1_700_000_000, 0), seldom: 1000, fails: true, modules: newSimModules(t, map[string]string{"two": adding})}
	b.guest = working(func(g *call) error {
		if _, err := g.do(abi.ImportResource, []any{"a", "add", nil}); err != nil {
			return err
		}
		return nil
	})
	b.open(t)
	b.seldom = 0
	if _, err := await(b, func() (host.Run, error) { // the start is durable, and what came with it
		return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h"})
	}); err != nil {
		t.Fatal(err)
	}
	first := len(k.sums)
	store.down, k.sums = true, nil
	go func() {
		_, _ = b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "i"})
	}()
	for len(k.sums) < 3 {
		for _, w := range b.step() {
			w()
		}
	}
	b.commit() // fails
	if n := number(t, store, kv.Space{Tenant: "t", Resource: "a"}); first != 3 || n != 3 || fmt.Sprint(k.sums) != "[4 5 6]" {
		t.Fatalf("%d adds, then %v, and the store has %d", first, k.sums, n)
	}
	store.down, k.sums = false, nil
	b.advance(time.Second)
	b.open(t)
	run := b.start("j", "")
	b.rest()
	if got := b.status(run.RunID); got != host.StatusCompleted || fmt.Sprint(k.sums) != "[4 5 6]" {
		t.Errorf("the run is %s, the sums are %v", got, k.sums)
	}
}

// listed lists a space in a call's turn, by pages.
type listed struct {
	kept
	pages []string
}

func (l *listed) Operate(call host.ResourceCall, _ kv.Space, data kv.Data) kv.Answer {
	v, _ := abi.DecodeValue(call.Payload)
	key, _ := v.(string)
	switch call.Method {
	case "set":
		return kv.Answer{Value: abi.Null, Write: &kv.Item{Key: key, Value: must(abi.EncodeValue(key))}}
	case "delete":
		return kv.Answer{Value: abi.Null, Write: &kv.Item{Key: key}}
	}
	q := kv.Query{Prefix: "k", Limit: 2, Bytes: 1 << 20}
	var page []string
	for {
		items, more, err := data.List(q)
		if err != nil {
			return kv.Answer{Err: &abi.Error{Code: "unavailable", Message: err.Error()}}
		}
		for _, i := range items {
			page = append(page, i.Key)
			q.After = i.Key
		}
		if !more {
			break
		}
		page = append(page, "|")
	}
	l.pages = append(l.pages, fmt.Sprintf("%s (%d keys)", strings.Join(page, " "), data.Totals().Keys))
	return kv.Answer{Value: abi.Null}
}

// A list has what is durable and what is not, in one order.
func TestKVList(t *testing.T) {
	l := &listed{}
	b := &bench{tokens: 1, outside: l, modules: newSimModules(t, map[string]string{"two": adding})}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		switch g.in.Step {
		case "begin":
			return list(1), nil
		case "end":
			return stopEvent(), nil
		}
		for i, op := range strings.Fields("set:k2 set:k4 set:x set:k6 see set:k1 delete:k4 set:k5 see delete:k1 delete:k2 delete:k5 delete:k6 see") {
			method, key, _ := strings.Cut(op, ":")
			if _, err := g.do(abi.ImportResource, []any{"a", method, key}); err != nil {
				return abi.StepOutput{}, err
			}
			if i == 4 {
				b.seldom = 1000 // from here on nothing is durable
			}
		}
		return abi.StepOutput{Events: []abi.Event{{Type: "Done", Body: abi.EmptyMap}}}, nil
	}
	b.open(t)
	b.start("h", "s")
	b.rest()
	for i, want := range []string{"k2 k4 | k6 (4 keys)", "k1 k2 | k5 k6 (5 keys)", " (1 keys)"} {
		if i >= len(l.pages) || l.pages[i] != want {
			t.Errorf("page %d: %q, want %q", i, l.pages, want)
		}
	}
}
