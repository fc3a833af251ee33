package wire

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memoryReader reads the size of the live objects of the process, and its memory limit:
// GOMEMLIMIT, or the limit of its control group, or none.
type memoryReader struct {
	once  sync.Once
	group int64 // limit of the control group; 0: unknown

	mu     sync.Mutex // guards forced
	forced time.Time
}

// groupFile has the memory limit of the process's control group.
const groupFile = "/sys/fs/cgroup/memory.max"

func (m *memoryReader) read() (live, limit int64) {
	m.once.Do(func() {
		if text, err := os.ReadFile(groupFile); err == nil {
			m.group, _ = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max": 0
		}
	})
	if limit = debug.SetMemoryLimit(-1); limit == math.MaxInt64 {
		limit = m.group
	}
	live = liveBytes()
	if limit > 0 && float64(live) > 0.8*float64(limit) && m.mayForce() {
		// The number comes from the latest collection, which may be minutes old if the
		// process allocates little.
		runtime.GC()
		live = liveBytes()
	}
	return live, limit
}

// mayForce reports whether a collection may be forced: at most one a second.
func (m *memoryReader) mayForce() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.forced) < time.Second {
		return false
	}
	m.forced = time.Now()
	return true
}

func liveBytes() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(min(s[0].Value.Uint64(), math.MaxInt64))
}
