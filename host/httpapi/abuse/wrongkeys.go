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
// look up its keys at all, except keys that were right lately, from any address. So clients
// that share an address with somebody who tries keys (behind a NAT or a proxy, or on this
// machine: no address is an exception) go on with the keys that are in use. Only a key that
// the server has not seen since it started has to wait, for as long as Retry-After says.
// Right keys are kept as 64 bits of a keyed hash; a match only means that the key is looked
// up.
//
// The memory is bounded: it holds the addresses that were wrong last, and the keys that were
// right last.

// Bounds of what is kept, in addresses, keys and entries of the audit log.
const (
	maxWrongAddresses = 10_000
	maxRightKeys      = 4096
	NotesPerHour      = 10
)

// WrongKeys counts wrong keys. nil counts none. Its methods may be called from any
// goroutine.
type WrongKeys struct {
	perMinute int
	seed      maphash.Seed
	now       func() time.Time

	mu        sync.Mutex // guards what follows; nothing is called under it
	addresses lru[netip.Prefix, *wrongAddress]
	right     lru[uint64, struct{}]
	notes     bucket.Bucket // entries that the audit log may have
	unnoted   int           // wrong keys without an entry since the last one
}

// wrongAddress is an address that has sent wrong keys, with the number of wrong keys that
// it may still send.
type wrongAddress struct {
	left bucket.Bucket
	told bool // that the address is refused
}

// NewWrongKeys counts the wrong keys of an address a minute; nil if there is no limit.
func NewWrongKeys(perMinute int, now func() time.Time) *WrongKeys {
	if perMinute <= 0 {
		return nil
	}
	return &WrongKeys{
		perMinute: perMinute, seed: maphash.MakeSeed(), now: now,
		addresses: lru[netip.Prefix, *wrongAddress]{most: maxWrongAddresses}, right: lru[uint64, struct{}]{most: maxRightKeys},
	}
}

// rate is that of the wrong keys of an address.
func (w *WrongKeys) rate() bucket.Rate {
	return bucket.Rate{Size: float64(w.perMinute), Span: time.Minute}
}

// Wait gives the time for which a key from an address is not looked up; 0: it is looked
// up. first says that this is the first refusal in a row.
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

// Note says whether a wrong key gets an entry in the audit log. The first wrong keys of
// addresses do, NotesPerHour at most, so that strangers can neither fill a disk nor displace
// other entries. others is the number of wrong keys without an entry since the last one.
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

// Seen notes whether a key that was looked up was wrong. first says that it is the first
// wrong key of its address, as far as the address is remembered.
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

// AddressOf gives the network of a request that counts as one client: an IPv4 address, or the 64
// bits of an IPv6 address that a site has to itself.
func AddressOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // all of these count as one
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // fails for other numbers of bits only
	return p
}

// lru keeps the most entries that were used last. The zero value with most set is ready
// for use.
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
