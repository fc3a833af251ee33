package httpapi

import (
	"container/list"
	"context"
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/bucket"
)

// Who tries keys is slowed down, by address: each has so many wrong keys a minute,
// and beyond them a key is not looked up at all, but for those that were right a
// while ago, from wherever. So whoever shares an address with one who tries keys (a
// NAT, a proxy, this machine: no address is an exception) goes on with the keys that
// are in use; only a key that this server has not seen since it started has to wait,
// for as long as Retry-After says. Which keys these are is kept as 64 bits of a keyed
// hash: that one is among them says only that it is looked up.
//
// All of it is bounded: the addresses that were wrong last, and the keys that were
// right last.

// Bounds of what is kept, in addresses and keys.
const (
	maxWrongAddresses = 10_000
	maxRightKeys      = 4096
	notesPerHour      = 10
)

// wrongKeys counts wrong keys. nil: they are not counted.
type wrongKeys struct {
	perMinute int
	seed      maphash.Seed
	now       func() time.Time

	mu        sync.Mutex // guards what follows; nothing is called under it
	addresses lru[netip.Prefix, *wrongAddress]
	right     lru[uint64, struct{}]
	notes     bucket.Bucket // entries that the audit log may have
	unnoted   int           // wrong keys without an entry since the last one
}

// wrongAddress is an address that has sent wrong keys: so many that it had left at a
// time.
type wrongAddress struct {
	left bucket.Bucket
	told bool // that it is refused
}

func newWrongKeys(perMinute int, now func() time.Time) *wrongKeys {
	if perMinute <= 0 {
		return nil
	}
	return &wrongKeys{
		perMinute: perMinute, seed: maphash.MakeSeed(), now: now,
		addresses: lru[netip.Prefix, *wrongAddress]{most: maxWrongAddresses}, right: lru[uint64, struct{}]{most: maxRightKeys},
	}
}

// rate is that of the wrong keys of an address.
func (w *wrongKeys) rate() bucket.Rate {
	return bucket.Rate{Size: float64(w.perMinute), Span: time.Minute}
}

// wait says for how long a key is not looked up that comes from an address; 0: it is.
// first says that this is the first such answer.
func (w *wrongKeys) wait(from netip.Prefix, key string) (wait time.Duration, first bool) {
	if w == nil || key == "" {
		return 0, false
	}
	print := maphash.String(w.seed, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.addresses.get(from)
	if !ok {
		return 0, false
	}
	if a.left.Fill(w.now(), w.rate()); a.left.Left >= 1 {
		a.told = false
		return 0, false
	}
	if _, known := w.right.get(print); known {
		return 0, false
	}
	first, a.told = !a.told, true
	return max(time.Second, a.left.Until(1, w.rate())), first
}

// note says whether a wrong key gets an entry in the audit log: the first ones of
// addresses do, a few at a time, and notesPerHour in all, so that strangers can neither
// fill a disk nor push out what the log is for. others is how many had none since.
func (w *wrongKeys) note(first bool) (note bool, others int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !first || w.notes.Take(w.now(), bucket.Rate{Size: notesPerHour, Span: time.Hour}) > 0 {
		w.unnoted++
		return false, 0
	}
	others, w.unnoted = w.unnoted, 0
	return true, others
}

// seen notes how a key that was looked up did; first says that it is the first wrong
// one of its address, as far as that is remembered.
func (w *wrongKeys) seen(from netip.Prefix, key string, wrong bool) (first bool) {
	if w == nil || key == "" {
		return false
	}
	print := maphash.String(w.seed, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !wrong {
		w.right.put(print, struct{}{})
		return false
	}
	w.right.remove(print) // it was revoked, or has expired
	a, ok := w.addresses.get(from)
	if !ok {
		a = &wrongAddress{}
		w.addresses.put(from, a)
	}
	a.left.Fill(w.now(), w.rate())
	first = a.left.Left >= float64(w.perMinute) // it has sent none for a while
	a.left.Left = max(0, a.left.Left-1)
	return first
}

// addressOf gives the network that counts as one client: an IPv4 address, or the 64
// bits of an IPv6 address that a site has to itself.
func addressOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // all such are one
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // fails for other numbers of bits only
	return p
}

// enterSlowly asks what a request may do that comes with a key, unless its address
// has tried too many.
func (s *Server) enterSlowly(r *http.Request, key, tenant string) (host.Grant, error) {
	from := addressOf(r)
	if wait, first := s.wrong.wait(from, key); wait > 0 {
		if first {
			s.cfg.Log.Warn("too many wrong keys from an address: others are not looked up for a while", "address", from.String())
		}
		s.wrongKey(r.Context(), from, true, first)
		return host.Grant{}, &host.Error{Code: host.CodeLimitExceeded, RetryAfter: wait,
			Message: "Too many wrong API keys have come from this address: try again later"}
	}
	grant, err := s.cfg.Access.Enter(key, tenant)
	wrong := host.CodeOf(err) == host.CodeUnauthenticated
	if first := s.wrong.seen(from, key, wrong); wrong && key != "" {
		s.wrongKey(r.Context(), from, false, first)
	}
	return grant, err
}

// wrongKey tells of a wrong key, the first of its kind from its address or not.
func (s *Server) wrongKey(ctx context.Context, from netip.Prefix, refused, first bool) {
	if s.cfg.WrongKey != nil {
		s.cfg.WrongKey(refused)
	}
	if s.cfg.NoteWrongKey == nil || s.wrong == nil {
		return
	}
	if note, others := s.wrong.note(first); note {
		s.cfg.NoteWrongKey(ctx, from.String(), refused, others)
	}
}

// lru keeps what was used last, at most so much of it. The zero value with most set
// is ready for use.
type lru[K comparable, V any] struct {
	most  int
	order list.List // of lruItem, the last used first
	items map[K]*list.Element
}

type lruItem[K comparable, V any] struct {
	key   K
	value V
}

func (l *lru[K, V]) get(key K) (v V, ok bool) {
	e := l.items[key]
	if e == nil {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(lruItem[K, V]).value, true
}

func (l *lru[K, V]) put(key K, value V) {
	if _, ok := l.get(key); ok {
		l.order.Front().Value = lruItem[K, V]{key, value}
		return
	}
	if l.items == nil {
		l.items = map[K]*list.Element{}
	}
	l.items[key] = l.order.PushFront(lruItem[K, V]{key, value})
	if l.order.Len() > l.most {
		l.remove(l.order.Back().Value.(lruItem[K, V]).key)
	}
}

func (l *lru[K, V]) remove(key K) {
	if e := l.items[key]; e != nil {
		l.order.Remove(e)
		delete(l.items, key)
	}
}
