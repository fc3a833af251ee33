package buildqueue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host/turns"
)

// A tenant that has a hundred large modules built leaves a place for others, whose
// modules do not wait for its; and two that both want all places get as many bytes.
func TestBuildsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2)
		var order []string
		begin := func(tenant string, bytes int) {
			go func() {
				if q.Take(tenant, bytes, nil, t.Context().Done()) {
					order = append(order, tenant)
				}
			}()
			synctest.Wait()
		}
		end := func(tenant string) {
			q.Leave(tenant)
			synctest.Wait()
		}
		for range 100 {
			begin("storm", 3_000_000)
		}
		if len(order) != 1 {
			t.Fatalf("%d builds of one tenant at a time", len(order))
		}
		begin("calm", 1_000_000)
		if !slices.Equal(order, []string{"storm", "calm"}) {
			t.Fatalf("order: %q", order)
		}
		end("calm")
		if len(order) != 2 {
			t.Fatalf("order: %q", order)
		}
		// A third tenant has what was free, and is behind when both want more.
		for range 30 {
			begin("other", 1_000_000)
		}
		order = nil
		for range 12 {
			end("other")
			if n := len(order); n != 1 || order[0] != "other" {
				t.Fatalf("order: %q", order)
			}
			order = nil
		}
		// With one place for all it is bytes that count.
		q.mu.Lock()
		q.most = 2
		q.free--
		q.mu.Unlock()
		end("storm")
		end("other")
		bytes := map[string]int{"storm": 3_000_000, "other": 13_000_000} // the storm has to catch up first
		for range 16 {
			who := order[len(order)-1]
			bytes[who] += map[string]int{"storm": 3_000_000, "other": 1_000_000}[who]
			end(who)
		}
		if apart := bytes["storm"] - bytes["other"]; apart < -3_000_000 || apart > 3_000_000 {
			t.Errorf("order %q, %v bytes", order, bytes)
		}
	})
}

// A tenant that was idle begins level with the others: it has saved up nothing.
func TestIdlenessIsNoCreditForBuilds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2)
		q.most = 2
		q.free = 1
		done := t.Context().Done()
		for range 50 { // alone for long
			q.Take("busy", 1000, nil, done)
			q.Leave("busy")
		}
		var order []string
		q.Take("busy", 1000, nil, done)
		for _, tenant := range []string{"idle", "busy", "idle", "busy", "idle", "busy"} {
			go func() {
				if q.Take(tenant, 1000, nil, done) {
					order = append(order, tenant)
				}
			}()
			synctest.Wait()
		}
		q.Leave("busy")
		for range 5 {
			synctest.Wait()
			q.Leave(order[len(order)-1])
		}
		synctest.Wait()
		if !slices.Equal(order, []string{"busy", "idle", "busy", "idle", "busy", "idle"}) {
			t.Errorf("order: %q", order)
		}
	})
}

// Builds that wait give up when the sandbox closes.
func TestTurnsEnd(t *testing.T) {
	q := New(1)
	done := make(chan struct{})
	q.Take("t", 1, nil, done)
	close(done)
	if q.Take("t", 1, nil, done) {
		t.Error("it has a place that another has")
	}
}

// As many builds go before a waiting one as its turn says, if nobody else comes.
func TestTurnsSayHowManyGoBefore(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	synctest.Test(t, func(t *testing.T) {
		q := New(2)
		q.most, q.free = 2, 1 // one place for all
		q.Take("first", 1, nil, t.Context().Done())
		var all []*turns.Turn
		var order []*turns.Turn
		var tenants []string
		for range 40 {
			tenant, bytes, turn := []string{"a", "b", "c"}[r.IntN(3)], 1+r.IntN(1000), &turns.Turn{}
			all = append(all, turn)
			go func() {
				if q.Take(tenant, bytes, turn, t.Context().Done()) {
					order, tenants = append(order, turn), append(tenants, tenant)
				}
			}()
			synctest.Wait()
		}
		said := map[*turns.Turn]int{}
		for _, turn := range all {
			s := turn.Stage()
			if s.Name != turns.StageWaiting {
				t.Fatalf("a build that waits says %+v", s)
			}
			said[turn] = s.Ahead
		}
		q.Leave("first")
		synctest.Wait()
		for n := range all {
			if len(order) != n+1 || said[order[n]] != n {
				t.Fatalf("the build that begins as number %d (of %d) has said that %d go before", n, len(order), said[order[n]])
			}
			if s := order[n].Stage(); s.Name != turns.StageCompiling {
				t.Fatalf("a build that has begun says %+v", s)
			}
			q.Leave(tenants[n])
			synctest.Wait()
		}
		if s := order[0].Stage(); s.Name != turns.StageCompiling {
			t.Errorf("a build that has ended says %+v", s)
		}
	})
}
