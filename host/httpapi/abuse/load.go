package abuse

import (
	"bytes"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
)

// overloadPause is how long a refused client waits before it asks again.
const overloadPause = time.Second

// Load limits a resource that requests hold while the server handles them. A tenant may
// hold as much as it leaves free: half if it is alone, a third if there are two such
// tenants. So a tenant that asks for everything leaves room for others. Its methods may
// be called from any goroutine.
type Load struct {
	what string // for messages
	most int64

	mu      sync.Mutex // guards the fields below
	taken   int64
	tenants map[string]int64
}

// NewLoad creates a load with the limit most. what names the resource in messages.
func NewLoad(what string, most int64) *Load {
	return &Load{what: what, most: most, tenants: map[string]int64{}}
}

// Take takes n for a tenant. alone says that there are no other tenants; then the tenant
// may take everything. The error is [host.CodeOverloaded].
func (l *Load) Take(tenant string, n int64, alone bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.most - l.taken
	if n > left || !alone && l.tenants[tenant]+n > left {
		return &host.Error{Code: host.CodeOverloaded, RetryAfter: overloadPause,
			Message: "The server has too much to do (" + l.what + "): the request had no effect"}
	}
	l.taken += n
	l.tenants[tenant] += n
	return nil
}

// Give returns n that Take has taken.
func (l *Load) Give(tenant string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= n
	if l.tenants[tenant] -= n; l.tenants[tenant] == 0 {
		delete(l.tenants, tenant)
	}
}

// Taken returns how much all tenants hold now.
func (l *Load) Taken() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// Place is the memory for bodies that a request holds. One goroutine uses it. A nil Place
// counts nothing.
type Place struct {
	of     *Load
	tenant string
	alone  bool
	bytes  int64
}

// Place returns a place for a request of a tenant; see [Load.Take].
func (l *Load) Place(tenant string, alone bool) *Place {
	return &Place{of: l, tenant: tenant, alone: alone}
}

// Grow takes memory for n bytes of the request's body, until Release.
// [host.CodeTooLarge], [host.CodeOverloaded].
func (p *Place) Grow(n int64) error {
	if p == nil {
		return nil
	}
	most, held := p.of.most, p.bytes
	if !p.alone { // see Load
		most -= held
	}
	if n > most-held {
		return host.Errorf(host.CodeTooLarge, "The request body takes more memory than the server gives to one (max-request-bytes %d): send less, or in parts", p.of.most)
	}
	if err := p.of.Take(p.tenant, n, p.alone); err != nil {
		return err
	}
	p.bytes += n
	return nil
}

// Shrink releases n bytes that Grow has taken.
func (p *Place) Shrink(n int64) {
	if p != nil {
		p.bytes -= n
		p.of.Give(p.tenant, n)
	}
}

// weighed is the length in bytes from which the memory for processing a body counts, too.
// Shorter bodies never need much.
const weighed = 64 << 10

// Transcoding returns the memory, in bytes, that transcoding a body needs in addition to
// the body: copies with longer heads, and the order of each map.
func Transcoding(raw []byte, isCBOR bool) int64 {
	const head, order = 5, 16
	n := int64(len(raw))
	if n < weighed {
		return 0
	}
	lists, maps := bytes.Count(raw, []byte{'['}), bytes.Count(raw, []byte{'{'})
	if isCBOR {
		lists, maps = 0, 0
		for _, b := range raw { // also counts bytes within texts: slightly too many
			if cbor.Major(b) == cbor.Map {
				maps++
			}
		}
	}
	return 2*n + int64(maps)*(order+head) + int64(lists)*head
}

// Keeping returns the memory, in bytes, of the nodes of a state made from an encoded
// value.
func Keeping(raw abi.Raw) (n int64) {
	const node = 80
	if len(raw) < weighed {
		return 0
	}
	for off := 0; off < len(raw); n += node {
		arg, next := cbor.Head(raw, off)
		if major := cbor.Major(raw[off]); major == cbor.Text || major == cbor.Bytes {
			next += int(arg)
		}
		off = next
	}
	return n
}

// Release releases everything that the place holds.
func (p *Place) Release() { p.Shrink(p.bytes) }
