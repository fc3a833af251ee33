package quarantine

import (
	"errors"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

var key = host.SessionKey{Tenant: "t", Session: "s"}

// A session that cannot be read is left alone for a second, and for twice as long each time
// in a row, up to a minute. Whoever asks meanwhile hears when to come back.
func TestUnreadBacksOff(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var l List
	l.Init(func() time.Time { return now })
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		want *= time.Second
		if err := l.Unread(key, errors.New("cause")); err.RetryAfter != want || err.Code != host.CodeUnavailable {
			t.Fatalf("%+v, want %s", err, want)
		}
		now = now.Add(want / 2)
		var he *host.Error
		if err := l.Check(key); !errors.As(err, &he) || he.RetryAfter != want-want/2 {
			t.Fatalf("half the time later: %v", err)
		}
		if until, ok := l.Until(key); !ok || !until.Equal(now.Add(want-want/2)) {
			t.Fatalf("until %s, %t", until, ok)
		}
		now = now.Add(want)
		if err := l.Check(key); err != nil {
			t.Fatalf("after it: %v", err)
		}
	}
	if l.Damaged() != 0 || l.Len() != 1 || !l.Has(key) {
		t.Errorf("%d damaged of %d", l.Damaged(), l.Len())
	}
	if l.Release(key) == nil || l.Release(key) != nil || l.Check(key) != nil {
		t.Error("a session that is released is in quarantine still, or was in none")
	}
	if err := l.Unread(key, errors.New("cause")); err.RetryAfter != time.Second {
		t.Errorf("after its release it begins with %s", err.RetryAfter)
	}
}

// A session that does not fold is left alone for a minute, and is reported when that is
// news; one that ends the server is left alone until it is released.
func TestIsolated(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var l List
	l.Init(func() time.Time { return now })
	fault := errors.New("entry 7 does not fold")
	if err, news := l.Isolate(key, fault, fault); !news || err.Code != host.CodeInternal || !errors.Is(err, fault) {
		t.Errorf("%v, news %t", err, news)
	}
	if _, news := l.Isolate(key, fault, fault); news {
		t.Error("the same fault is news again")
	}
	if _, news := l.Isolate(key, errors.New("another"), errors.New("another")); !news {
		t.Error("another fault is no news")
	}
	now = now.Add(isolatedFor)
	if l.Check(key) != nil || l.Damaged() != 1 {
		t.Error("it is not tried again")
	}
	if err, _ := l.Isolate(key, ErrEndsServer, ErrEndsServer); err == nil {
		t.Error("a session that ends the server is not refused")
	}
	if now = now.AddDate(1, 0, 0); l.Check(key) == nil {
		t.Error("a session that ends the server is tried again by itself")
	}
	l.Forget("other")
	if l.Forget("t"); l.Len() != 0 {
		t.Error("the tenant's session stays")
	}
}
