package hosttest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
)

// fullStore is a store that accepts nothing while it is full, like a store whose disk has
// no space left.
type fullStore struct {
	host.Store
	full    atomic.Bool
	refused atomic.Int64
}

var errFull = fmt.Errorf("%w: %w", host.ErrNotCommitted, syscall.ENOSPC)

func (f *fullStore) Append(ctx context.Context, b host.Batch) error {
	if f.full.Load() {
		f.refused.Add(1)
		return errFull
	}
	return f.Store.Append(ctx, b)
}

func (f *fullStore) SetMeta(ctx context.Context, key string, value []byte) error {
	if f.full.Load() {
		return errFull
	}
	return f.Store.SetMeta(ctx, key, value)
}

// While the disk is full the server is unhealthy, acknowledges nothing and answers reads.
// When there is space again it continues with everything that it had begun.
func TestFullDisk(t *testing.T) {
	var store *fullStore
	h := hosttest.New(t, hosttest.Config{Data: t.TempDir(), WrapStore: func(s host.Store) host.Store {
		store = &fullStore{Store: s}
		return store
	}})
	h.Load(t, "tinygo", "counter", "human")
	before := h.Run(t, "counter", in("chat", nil))
	waiting := h.RunNoWait(t, "human", nil)
	store.full.Store(true)
	type answer struct {
		status int
		out    []byte
	}
	answers := make(chan answer, 1)
	go func() { // waits, because nothing can be acknowledged
		status, out := h.Do(t, http.MethodPost, "/workflows/counter/run", in("chat", nil))
		answers <- answer{status, out}
	}()
	eventually(t, "the server is unhealthy", func() bool {
		status, _ := h.Do(t, http.MethodGet, "/health", nil)
		return status == http.StatusServiceUnavailable && store.refused.Load() > 2
	})
	if status, out := h.Do(t, http.MethodPost, "/workflows/counter/run", in("chat", nil)); status != http.StatusServiceUnavailable {
		t.Errorf("a start while the disk is full: %d %s", status, out)
	}
	if status, out := h.Do(t, http.MethodGet, "/handlers/"+before.HandlerID, nil); status != http.StatusOK {
		t.Errorf("a question while the disk is full: %d %s", status, out)
	}
	select {
	case a := <-answers:
		t.Errorf("a start was answered before it was durable: %d %s", a.status, a.out)
	default:
	}
	store.full.Store(false)
	if a := <-answers; a.status != http.StatusOK || !strings.Contains(string(a.out), `"result":2`) {
		t.Errorf("the start that waited: %d %s", a.status, a.out)
	}
	eventually(t, "the server is healthy", func() bool {
		status, _ := h.Do(t, http.MethodGet, "/health", nil)
		return status == http.StatusOK
	})
	if got := h.Result(t, "counter", in("chat", nil)); got != "3" {
		t.Errorf("the session counts %s", got)
	}
	if status, _ := h.Do(t, http.MethodGet, "/handlers/"+waiting.HandlerID, nil); status != http.StatusAccepted {
		t.Errorf("the waiting run: %d", status)
	}
}

// mounted starts a server on a file system of mib MiB in separate name spaces, and
// returns the path of its data as seen from this process.
func mounted(t *testing.T, mib int) (p *hosttest.Process, data string) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf(`mount -t tmpfs -o size=%dm tmpfs %s && exec "$0" "$@"`, mib, dir)
	p = hosttest.ServeBy(t, []string{"unshare", "-Urm", "sh", "-c", script}, dir)
	return p, filepath.Join("/proc", fmt.Sprint(p.PID()), "root", dir)
}

// mayMount reports whether this user may mount a file system in a name space; some
// containers forbid it.
func mayMount() bool {
	return exec.Command("unshare", "-Urm", "mount", "-t", "tmpfs", "tmpfs", "/tmp").Run() == nil
}

// A real file system is full: acknowledged data is kept, and the server continues when
// there is space, without a restart.
func TestFullFileSystem(t *testing.T) {
	if !mayMount() {
		t.Skip("this user may not mount a file system here; TestFullDisk has a store that refuses instead")
	}
	p, data := mounted(t, 48)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	put(t, p, "human", hosttest.Plugin(t, "human-tinygo"))
	var acknowledged []string
	for range 20 {
		acknowledged = append(acknowledged, p.Run(t, "counter", nil).HandlerID)
	}
	ballast := filepath.Join(data, "ballast")
	fill(t, ballast)
	l := startLoad(t, p, 2)
	eventually(t, "the server is unhealthy", func() bool {
		status, _ := p.Do(t, http.MethodGet, "/health", nil)
		return status == http.StatusServiceUnavailable
	})
	for _, id := range acknowledged {
		if status, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil); status != http.StatusOK {
			t.Fatalf("on a full disk, run %s: %d %s", id, status, out)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server is healthy", func() bool {
		status, _ := p.Do(t, http.MethodGet, "/health", nil)
		return status == http.StatusOK
	})
	l.stop()
	p.Run(t, "counter", nil)
	for _, id := range append(acknowledged, l.acknowledged()...) {
		if status, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil); status != http.StatusOK && status != http.StatusAccepted {
			t.Fatalf("run %s, which was acknowledged: %d %s", id, status, out)
		}
	}
}

// fill writes a file until the file system is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// After old runs are deleted, weft check finds nothing.
func TestCheckAfterRetention(t *testing.T) {
	limits, err := limit.Parse([]byte(`{"defaults": {"retention_runs": 5}}`))
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	h := hosttest.New(t, hosttest.Config{Data: data})
	h.Load(t, "tinygo", "counter", "human")
	for range 10 {
		h.Result(t, "counter", in("chat", nil))
		h.Result(t, "counter", nil)
		h.Result(t, "counter", map[string]any{"handler_id": "h"})
	}
	h.RunNoWait(t, "human", in("chat", nil))
	h.Stop(t)
	h = hosttest.New(t, hosttest.Config{Data: data, Limits: limits}) // sweeps when it starts
	eventually(t, "old runs are gone", func() bool {
		ended, _, err := h.Store.Ended(t.Context(), host.EndedQuery{Tenant: host.DefaultTenant, Until: host.EndedAt{Completed: 1 << 62}, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(ended) == 5
	})
	if got := h.Result(t, "counter", in("chat", nil)); got != "11" {
		t.Errorf("the named session counts %s", got)
	}
	if got := h.Result(t, "counter", map[string]any{"handler_id": "h"}); got != "11" {
		t.Errorf("the handler's session counts %s", got)
	}
	h.Stop(t)
	if found, sum := faults(t, data); len(found) > 0 {
		t.Errorf("%+v: %+v", sum, found)
	}
}
