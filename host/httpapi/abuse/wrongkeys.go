package abuse

import (
	"container/list"
	"hash/maphash"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/weftrun/weft/host/bucket"
)

// An address may send a number of wrong keys a minute. Beyond that, the server does not
// look up keys from this address, except keys that were recently right, from any address.
// So clients that share an address with an attacker (behind a NAT or a proxy, or on this
// machine: every address is counted) can continue to use their keys. Only a key that the
// server has not seen since it started must wait, for as long as Retry-After says. Right
// keys are kept as 64 bits of a keyed hash; a match only means that the key is looked up.
//
// The memory is bounded: it holds the addresses that were last wrong, and the keys that
// were last right.

// Bounds of the memory, in addresses, keys and entries of the audit log.
const (
	maxWrongAddresses = 10_000
	maxRightKeys      = 4096
	NotesPerHour      = 10
)

// WrongKeys counts wrong keys. A nil WrongKeys counts nothing. Its methods may be called
// from any goroutine.
type WrongKeys struct {
	perMinute int
	seed      maphash.Seed
	now       func() time.Time

	mu        sync.Mutex // guards the fields below; no callback runs under it
	addresses lru[netip.Prefix, *wrongAddress]
	right     lru[uint64, struct{}]
	notes     bucket.Bucket // how many more entries the audit log may have
	unnoted   int           // wrong keys without an entry since the last entry
}

// wrongAddress is an address that has sent wrong keys, and how many more wrong keys it
// may send.
type wrongAddress struct {
	left bucket.Bucket
	told bool // the refusal of the address was reported
}

// NewWrongKeys creates a WrongKeys that allows an address perMinute wrong keys a minute;
// nil if there is no limit.
func NewWrongKeys(perMinute int, now func() time.Time) *WrongKeys {
	if perMinute <= 0 {
		return nil
	}
	return &WrongKeys{
		perMinute: perMinute, seed: maphash.MakeSeed(), now: now,
		addresses: lru[netip.Prefix, *wrongAddress]{most: maxWrongAddresses}, right: lru[uint64, struct{}]{most: maxRightKeys},
	}
}

// rate is the rate of wrong keys that an address may send.
func (w *WrongKeys) rate() bucket.Rate {
	return bucket.Rate{Size: float64(w.perMinute), Span: time.Minute}
}

// Wait returns how long a key from an address is not looked up; 0 means that the key is
// looked up. first reports whether this is the first refusal in a row.
func (w *WrongKeys) Wait(from netip.Prefix, key string) (wait time.Duration, first bool) {
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

// Note reports whether a wrong key gets an entry in the audit log. The first wrong keys
// of addresses get one, NotesPerHour at most. So attackers can neither fill the disk nor
// displace other entries. others is the number of wrong keys without an entry since the
// last entry.
func (w *WrongKeys) Note(first bool) (note bool, others int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !first || w.notes.Take(w.now(), bucket.Rate{Size: NotesPerHour, Span: time.Hour}) > 0 {
		w.unnoted++
		return false, 0
	}
	others, w.unnoted = w.unnoted, 0
	return true, others
}

// Seen records whether a key that was looked up was wrong. first reports whether it is
// the first wrong key of its address, as far as the address is remembered.
func (w *WrongKeys) Seen(from netip.Prefix, key string, wrong bool) (first bool) {
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
	w.right.remove(print) // the key was revoked or has expired
	a, ok := w.addresses.get(from)
	if !ok {
		a = &wrongAddress{}
		w.addresses.put(from, a)
	}
	a.left.Fill(w.now(), w.rate())
	first = a.left.Left >= float64(w.perMinute) // the address has sent no wrong key for a while
	a.left.Left = max(0, a.left.Left-1)
	return first
}

// AddressOf returns the network of a request that counts as one client: an IPv4 address,
// or the 64 bits of an IPv6 address that belong to one site.
func AddressOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // all of these count as one client
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // only other numbers of bits can fail
	return p
}

// lru keeps the most recently used entries, up to most. The zero value with most set is
// ready for use.
type lru[K comparable, V any] struct {
	most  int
	order list.List // of lruItem, most recently used first
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
