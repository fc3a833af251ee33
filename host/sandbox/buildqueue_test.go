package sandbox

import (
	"slices"
	"testing"
	"testing/synctest"
)

// A tenant that has a hundred large modules built leaves a place for others, whose
// modules do not wait for its; and two that both want all places get as many bytes.
func TestBuildsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newBuildQueue(2)
		var order []string
		begin := func(tenant string, bytes int) {
			go func() {
				if q.take(tenant, bytes, t.Context().Done()) {
					order = append(order, tenant)
				}
			}()
			synctest.Wait()
		}
		end := func(tenant string) {
			q.leave(tenant)
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
		q := newBuildQueue(2)
		q.most = 2
		q.free = 1
		done := t.Context().Done()
		for range 50 { // alone for long
			q.take("busy", 1000, done)
			q.leave("busy")
		}
		var order []string
		q.take("busy", 1000, done)
		for _, tenant := range []string{"idle", "busy", "idle", "busy", "idle", "busy"} {
			go func() {
				if q.take(tenant, 1000, done) {
					order = append(order, tenant)
				}
			}()
			synctest.Wait()
		}
		q.leave("busy")
		for range 5 {
			synctest.Wait()
			q.leave(order[len(order)-1])
		}
		synctest.Wait()
		if !slices.Equal(order, []string{"busy", "idle", "busy", "idle", "busy", "idle"}) {
			t.Errorf("order: %q", order)
		}
	})
}

// Builds that wait give up when the sandbox closes.
func TestTurnsEnd(t *testing.T) {
	q := newBuildQueue(1)
	done := make(chan struct{})
	q.take("t", 1, done)
	close(done)
	if q.take("t", 1, done) {
		t.Error("it has a place that another has")
	}
}
