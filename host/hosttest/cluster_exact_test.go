package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// What one server promises exactly holds for all nodes together: of 1,000 starts at a limit
// of 100 active runs exactly 100 begin, whichever nodes they reach; a plugin that one node
// took runs at all; and when the revocation of a key has returned, every node refuses the
// key, also a node that was frozen meanwhile, and the owner before.
func TestNodesAreExact(t *testing.T) {
	const key, starts, limit = "an-admin-key-that-is-long-enough-for-all", 1000, 100
	dir := t.TempDir()
	file, limits := filepath.Join(dir, "admin.key"), filepath.Join(dir, "limits.json")
	for name, text := range map[string]string{file: key + "\n", limits: fmt.Sprintf(`{"tenants":{"many":{"tenant_runs_active":%d}}}`, limit)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// On a machine that is busy, a node may be silent for some time.
	n := newNodes(t, 3, pgtest.Own(t).URL, "--admin-key-file", file, "--limits", limits, "--lease", "8s")
	first := n.list[0]
	first.NewTenant(t, key, "many")
	var keys []hosttest.Key
	for range 3 {
		keys = append(keys, first.NewKey(t, key, "many", host.RoleAdmin))
	}
	n.list[1].LoadAs(t, keys[0].Key, "human-tinygo", "human")
	n.list[2].LoadAs(t, keys[0].Key, "counter-tinygo", "counter")
	for _, p := range n.list {
		p.Want(t, http.StatusOK, nil, keys[0].Key, http.MethodPost, "/workflows/counter/run", "{}")
	}

	var mu sync.Mutex
	answers := map[int]int{}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			for j := i; j < starts; j += 30 {
				a := n.list[j%3].Ask(t, keys[0].Key, http.MethodPost, startHuman, fmt.Sprintf(`{"handler_id":"h%d"}`, j))
				mu.Lock()
				answers[a.Status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if answers[http.StatusOK] != limit || answers[http.StatusTooManyRequests] != starts-limit {
		t.Errorf("the answers to %d starts at a limit of %d are %v", starts, limit, answers)
	}

	refusedBy := func(p *clusterProcess, k hosttest.Key) {
		t.Helper()
		if a := p.Ask(t, k.Key, http.MethodGet, "/workflows", ""); a.Status != http.StatusUnauthorized {
			t.Errorf("%s answers a revoked key with %d %s", p.name, a.Status, a.Body)
		}
	}
	// While frozen is stopped, a key is revoked at another node.
	revoked := func(frozen *clusterProcess, k hosttest.Key) {
		t.Helper()
		frozen.Want(t, http.StatusOK, nil, k.Key, http.MethodGet, "/workflows", "")
		frozen.Signal(t, syscall.SIGSTOP)
		var others []*clusterProcess
		for _, p := range n.list {
			if p != frozen {
				others = append(others, p)
			}
		}
		others[0].Want(t, http.StatusOK, nil, k.Key, http.MethodGet, "/workflows", "") // waits for an owner
		a := others[0].Ask(t, key, http.MethodDelete, "/keys/"+k.ID, "")
		for a.Status == http.StatusServiceUnavailable { // the outcome is unknown: the owner has changed
			a = others[0].Ask(t, key, http.MethodDelete, "/keys/"+k.ID, "")
		}
		if a.Status != http.StatusNoContent && a.Status != http.StatusNotFound {
			t.Fatalf("the revocation is answered with %d %s", a.Status, a.Body)
		}
		for _, p := range others {
			refusedBy(p, k)
		}
		// The first that the node sees after its sleep are requests with the key.
		var written, answered sync.WaitGroup
		for range 16 {
			written.Add(1)
			answered.Go(func() {
				trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written.Done() }}
				req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, frozen.URL+"/workflows", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer "+k.Key)
				res, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close()
				if res.StatusCode != http.StatusUnauthorized {
					t.Errorf("after its sleep, %s answers a revoked key with %d", frozen.name, res.StatusCode)
				}
			})
		}
		written.Wait()
		frozen.Signal(t, syscall.SIGCONT)
		answered.Wait()
		refusedBy(frozen, k)
	}
	owner := func() *clusterProcess {
		var view struct {
			Nodes []clusterNode `json:"nodes"`
		}
		a := first.Ask(t, key, http.MethodGet, "/cluster", "")
		if err := json.Unmarshal([]byte(a.Body), &view); err != nil {
			t.Fatalf("%s: %v", a.Body, err)
		}
		for _, node := range view.Nodes {
			for _, p := range n.list {
				if node.Owner && node.Name == p.name {
					return p
				}
			}
		}
		t.Fatalf("no node owns the sessions: %s", a.Body)
		return nil
	}()
	follower := n.list[0]
	if follower == owner {
		follower = n.list[1]
	}
	revoked(follower, keys[1])
	revoked(owner, keys[2])

	// A node that was started with another setting is shown.
	n.args = append(n.args, "--cors-origin", "http://other.test")
	n.start("other", t.TempDir())
	t.Setenv("WEFT_KEY", key)
	eventually(t, "weft nodes shows the setting", func() bool {
		exit, out := weft(t, "nodes", "--server", first.URL)
		return exit == 0 && strings.Contains(out, "\nother has other settings than the owner: --cors-origin\n")
	})
}
