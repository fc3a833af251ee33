package hosttest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// A server that gets ten times the requests that it accepts at once refuses the surplus
// by name, with the time after which to retry. Its memory stays bounded, it answers
// health checks, and after the storm it serves as before. All acknowledged data is kept.
func TestOverloadIsShed(t *testing.T) {
	const most, clients, rounds = 16, 160, 5
	h := hosttest.New(t, hosttest.Config{Data: t.TempDir(), MaxRequests: most, MaxRequestBytes: 8 << 20})
	h.Load(t, "tinygo", "human")
	body := `{"start_event":{"n":"` + strings.Repeat("x", 1<<20) + `"}}`
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex // guards the variables below
	var taken []string
	shed, peak := 0, uint64(0)
	post := func() error {
		res, err := client.Post(h.URL+"/workflows/human/run-nowait", "application/json", strings.NewReader(body))
		if err != nil {
			// Closing a body that was not read to its end closes the connection, perhaps
			// before the client has read the answer.
			mu.Lock()
			shed++
			mu.Unlock()
			return nil
		}
		defer func() { _ = res.Body.Close() }()
		out, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		var answer struct {
			ID   string `json:"handler_id"`
			Code string `json:"code"`
		}
		if err := json.Unmarshal(out, &answer); err != nil {
			return fmt.Errorf("%d %.200s: %w", res.StatusCode, out, err)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		mu.Lock()
		defer mu.Unlock()
		peak = max(peak, m.HeapAlloc)
		switch {
		case res.StatusCode == http.StatusOK:
			taken = append(taken, answer.ID)
		case res.StatusCode == http.StatusServiceUnavailable && answer.Code == "overloaded" && res.Header.Get("Retry-After") == "1":
			shed++
		default:
			return fmt.Errorf("%d %.200s", res.StatusCode, out)
		}
		return nil
	}
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range rounds {
				if err := post(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		if a := h.Ask(t, "", http.MethodGet, "/health", ""); a.Status != http.StatusOK {
			t.Errorf("health: %+v", a)
		}
	}
	wg.Wait()
	t.Logf("%d taken, %d shed, %d MiB of heap at most, the clients' share included", len(taken), shed, peak>>20)
	if shed == 0 || len(taken) == 0 {
		t.Error("that shows nothing")
	}
	if peak > 512<<20 {
		t.Errorf("%d MiB of heap", peak>>20)
	}
	for _, id := range taken {
		if a := h.Ask(t, "", http.MethodGet, "/handlers/"+id, ""); a.Status != http.StatusAccepted {
			t.Fatalf("run %s, which was acknowledged: %d %.200s", id, a.Status, a.Body)
		}
	}
	h.Want(t, http.StatusOK, nil, "", http.MethodPost, "/workflows/human/run-nowait", body)
}
