package scheduler

import (
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/quarantine"
)

// table has the sessions in memory, and what is known of those that must not be loaded
// now. Scheduler.mu guards it.
//
// A session enters by acquire or begin, and stays while somebody has it pinned, or entries
// of it are not durable. One without pins is in idle, and leaves by evict. A session that
// is deleted leaves at once; whoever loads it again waits for its barrier.
type table struct {
	s          *Scheduler
	sessions   map[host.SessionKey]*session
	barriers   map[host.SessionKey]uint64 // purged: positions to wait for before loading
	idle       []idleSession              // the longest idle first
	owing      []*session                 // that are to leave memory: see settleCounts
	quarantine quarantine.List            // sessions that do not fold, or could not be read
}

// idleSession is a session that had no pins at a time.
type idleSession struct {
	key   host.SessionKey
	since time.Time
}

func (t *table) init(s *Scheduler) {
	*t = table{s: s, sessions: map[host.SessionKey]*session{}, barriers: map[host.SessionKey]uint64{}}
	t.quarantine.Init(s.cfg.Now)
}
