package calls

import (
	"context"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// shelf is a store without keys, and a resource whose calls write an item.
type shelf struct {
	kv.Store
	host.Resources
	write kv.Item
}

func (*shelf) KVTotals(context.Context, kv.Space) (kv.Totals, error) {
	return kv.Totals{}, nil
}

func (*shelf) KVItem(context.Context, kv.Space, string) (kv.Item, error) {
	return kv.Item{}, &host.Error{Code: host.CodeNotFound, Cause: host.ErrNotFound}
}

func (s *shelf) Operate(host.ResourceCall, kv.Space, kv.Data) kv.Answer {
	w := s.write
	return kv.Answer{Value: abi.Null, Write: &w}
}

var here = kv.Space{Tenant: "t", Resource: "kv"}

// A key that is written twice keeps the value of the second write until that write is
// durable, because the store may have only the first write until then.
func TestSpaceKeepsTheNewestWriteUntilItIsDurable(t *testing.T) {
	s := &shelf{}
	var l Spaces
	l.Init(SpacesConfig{Store: s, Resources: s, Grow: func(context.Context, string) error { return nil }})
	sp := l.Enter(here)
	for pos, text := range []abi.Raw{{0x01}, {0x02}} {
		s.write = kv.Item{Key: "k", Value: text}
		_, w, err := l.Answer(t.Context(), sp, host.ResourceCall{}, 0)
		if err != nil || w == nil {
			t.Fatal(w, err)
		}
		l.Wrote(sp, w, uint64(pos)+1)
	}
	value := func() string {
		d := &data{ctx: t.Context(), store: s, spaces: &l, space: sp}
		item, _, err := d.Get("k")
		if err != nil {
			t.Fatal(err)
		}
		return string(item.Value)
	}
	for durable, want := range []string{"\x02", "\x02", ""} {
		if l.Settle(uint64(durable)); value() != want {
			t.Errorf("durable up to %d: the key has %q, want %q", durable, value(), want)
		}
	}
	if l.Leave(sp); len(l.open) != 0 {
		t.Error("a space that nobody needs is still open")
	}
}

// A write that makes a space larger needs room in the tenant's quota, and a refusal is the
// answer of the call. A write that makes the space smaller is always accepted.
func TestGrowthNeedsQuota(t *testing.T) {
	s := &shelf{write: kv.Item{Key: "k", Value: abi.Raw{0x01}}}
	var full error
	var l Spaces
	l.Init(SpacesConfig{Store: s, Resources: s, Grow: func(_ context.Context, tenant string) error {
		if tenant != here.Tenant {
			t.Errorf("the quota of tenant %q is asked", tenant)
		}
		return full
	}})
	sp := l.Enter(here)
	defer l.Leave(sp)
	_, w, err := l.Answer(t.Context(), sp, host.ResourceCall{}, 0)
	if err != nil || w == nil {
		t.Fatal(w, err)
	}
	l.Wrote(sp, w, 1)
	full = &host.Error{Code: host.CodeLimitExceeded, Message: "full"}
	s.write.Key = "another"
	if answer, w, err := l.Answer(t.Context(), sp, host.ResourceCall{}, 0); err != nil || w != nil || answer.Err == nil || answer.Err.Code != string(host.CodeLimitExceeded) {
		t.Errorf("a write beyond the quota: %+v, %+v, %v", answer, w, err)
	}
	s.write = kv.Item{Key: "k"}
	if answer, w, err := l.Answer(t.Context(), sp, host.ResourceCall{}, 0); err != nil || w == nil || answer.Err != nil || w.Growth >= 0 {
		t.Errorf("a deletion: %+v, %+v, %v", answer, w, err)
	}
}
