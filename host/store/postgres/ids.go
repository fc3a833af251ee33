package postgres

import (
	"hash/fnv"
	"sync"
	"time"
)

// partitions is the number of partitions of the sessions. It never changes.
const partitions = 128

// partition returns the partition of a session.
func partition(tenant, session string) int16 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(tenant))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(session))
	return int16(h.Sum64() % partitions)
}

// An id has 41 bits of milliseconds since 2020, 10 bits of the node's slot and 12 bits
// that count. So ids grow with time, and new rows go to the right edge of each index.
const (
	idCountBits = 12
	idSlotBits  = 10
)

var idEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// ids gives ids. Each is greater than all before, whatever the clock does.
type ids struct {
	mu   sync.Mutex
	last int64
	slot int64
}

// above makes all further ids greater than one that is stored.
func (g *ids) above(stored, slot int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slot = slot
	g.last = max(g.last, stored)
}

// next gives an id.
func (g *ids) next() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := max(time.Now().UnixMilli()-idEpoch, g.last>>(idCountBits+idSlotBits))
	id := now<<(idCountBits+idSlotBits) | g.slot<<idCountBits
	if g.last >= id {
		if id = g.last + 1; id&(1<<idCountBits-1) == 0 { // the millisecond's numbers are used up
			id = (g.last>>(idCountBits+idSlotBits)+1)<<(idCountBits+idSlotBits) | g.slot<<idCountBits
		}
	}
	g.last = id
	return id
}
