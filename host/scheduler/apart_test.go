package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
)

// Forty runs wait for a core at three deaths: nobody has held one, and nobody is
// suspected.
func TestWhoWaitsIsNotSuspected(t *testing.T) {
	m := newMortal(t, 2)
	list := names(40)
	m.begin(list...)
	for range 3 {
		_ = m.die(deaths.DeathUnknown)
		m.restart()
	}
	if n := m.sched.Load().Suspects; n != 0 {
		t.Errorf("%d are suspected", n)
	}
	m.survive()
	m.want(all(list))
}

// A run that ends the server is blocked within five restarts, wherever it does so and
// however the death looks; others end.
func TestGuiltyIsBlocked(t *testing.T) {
	for _, class := range []deaths.DeathClass{deaths.DeathCrash, deaths.DeathMemory, deaths.DeathUnknown} {
		for _, tt := range []struct {
			place, message string
			guest          func(m *mortal, g *call) error
		}{
			{"at its entry", "before the first host call", func(m *mortal, _ *call) error { return m.die(class) }},
			{"at a host call", "at host call 3 (state_get)", func(m *mortal, g *call) error {
				for range 2 {
					if err := increment(g, 1); err != nil {
						return err
					}
				}
				m.commit()
				_, err := g.do(abi.ImportStateGet, []any{"n", 0})
				return errors.Join(err, m.die(class))
			}},
			{"behind many units", "before the first host call", func(m *mortal, g *call) error {
				if err := g.burn(m.t.Context(), 400_000_000); err != nil {
					return err
				}
				return m.die(class)
			}},
		} {
			t.Run(fmt.Sprint(class, " ", tt.place), func(t *testing.T) {
				m := newMortal(t, 2)
				m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
					if g.in.Run.SessionID == "h3" && !m.dead() {
						if err := tt.guest(m, g); err != nil {
							return abi.StepOutput{}, err
						}
					}
					return stopEvent(), nil
				}
				list := names(8)
				m.begin(list...)
				if n := m.survive(); n < 3 || n > 5 {
					t.Errorf("it took %d restarts", n)
				}
				want := all(list)
				want["h3"] = tt.message
				m.want(want)
				if got := m.record(t, "h3").Blocked; got != nil && !strings.Contains(got.Message, "class "+string(class)) {
					t.Errorf("blocked by %q, the class is %s", got.Message, class)
				}
				if n := m.sched.Counters().Blamed; n != 1 {
					t.Errorf("%d are blamed", n)
				}
				again(t, m)
			})
		}
	}
}

// A guest ends the server before its start is durable, and the client starts the run
// again after each death: it is blocked all the same.
func TestGuiltyBeforeItsStartIsDurable(t *testing.T) {
	m := newMortal(t, 2)
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.SessionID == "bad" && !m.dead() {
			return abi.StepOutput{}, m.die(deaths.DeathUnknown)
		}
		return stopEvent(), nil
	}
	started := func() bool {
		_, err := m.sched.History().Get(t.Context(), "t", "bad")
		return err == nil
	}
	lost := 0
	for m.deaths <= 5 && !started() {
		go func() {
			_, _ = m.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "one", HandlerID: "bad", SessionID: "bad"})
		}()
		for m.sched.Ready() == 0 { // nothing is committed before live
			runtime.Gosched()
		}
		if m.live() {
			break
		}
		if m.restart(); !started() {
			lost++
			m.live() // the suspect is gone
		}
	}
	m.survive()
	if lost != 1 || m.deaths > 5 {
		t.Errorf("%d starts were lost in %d deaths, want 1 in 5 at most", lost, m.deaths)
	}
	m.want(map[string]string{"bad": "before the first host call"})
}

// again has a blocked run resumed, which is innocent by now.
func again(t *testing.T, m *mortal) {
	t.Helper()
	m.guest = func(context.Context, *call) (abi.StepOutput, error) { return stopEvent(), nil }
	if _, err := await(m.bench, func() (host.Run, error) { return m.sched.Resume(t.Context(), "t", "h3") }); err != nil {
		t.Fatal(err)
	}
	m.survive()
	m.want(map[string]string{"h3": ""})
}

// loading is a store that ends the process when a session is loaded.
type loadingStore struct {
	host.Store
	m       *mortal
	session string
}

func (s *loadingStore) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	if key.Session == s.session {
		return host.StoredSession{}, s.m.die(deaths.DeathCrash)
	}
	return s.Store.LoadSession(ctx, key)
}

// A session that ends the server when it is loaded is quarantined until it is released.
func TestGuiltyLoadIsQuarantined(t *testing.T) {
	m := newMortal(t, 2)
	list := names(6)
	m.begin(list...)
	store := m.store
	m.store = &loadingStore{store, m, "h3"}
	m.restart()
	if n := m.survive(); n < 3 || n > 5 {
		t.Errorf("it took %d restarts", n)
	}
	want := all(list)
	delete(want, "h3")
	m.want(want)
	if n := m.sched.Quarantined(); n != 1 {
		t.Errorf("%d sessions are in quarantine", n)
	}
	_, err := m.sched.Resume(t.Context(), "t", "h3")
	if err == nil || !strings.Contains(err.Error(), "the server ends while it is loaded") {
		t.Errorf("whoever wants the session gets %v", err)
	}
	m.advance(24 * time.Hour)
	if n := m.survive(); n != 0 {
		t.Errorf("it is loaded again after a day")
	}
	// A death for another reason does not load it either.
	_ = m.die(deaths.DeathUnknown)
	m.restart()
	if n := m.survive(); n != 0 || m.sched.Quarantined() != 1 {
		t.Errorf("after another death: %d restarts, %d in quarantine", n, m.sched.Quarantined())
	}
	// After a clean end it is tried anew.
	m.life.lose()
	m.store = store
	m.open(t)
	m.survive()
	m.want(map[string]string{"h3": ""})
}

// deadly is a resource whose calls end the server.
type deadly struct {
	noKV
	m    *mortal
	mode host.ResourceMode
	made int
}

func (d *deadly) Grant(host.ResourceUser, abi.ResourceDecl) (host.ResourceGrant, error) {
	return host.ResourceGrant{Mode: d.mode, Pool: "crm", InFlight: 2}, nil
}

func (d *deadly) Call(context.Context, host.ResourceCall) (abi.Raw, *abi.Error) {
	d.made++
	_ = d.m.die(deaths.DeathCrash)
	return nil, nil
}

// A resource call that ends the server is found as a step is. One that may not be
// repeated is made once, and its step is told.
func TestGuiltyCallIsBlocked(t *testing.T) {
	for mode, message := range map[host.ResourceMode]string{host.ResourceRepeat: "during the call", host.ResourceFail: ""} {
		t.Run(string(mode), func(t *testing.T) {
			m := newMortal(t, 2)
			d := &deadly{m: m, mode: mode}
			m.outside = d
			m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
				if g.in.Run.SessionID == "h3" {
					if _, err := g.do(abi.ImportResource, []any{"crm", "put", 1}); err != nil {
						return abi.StepOutput{}, err
					}
				}
				return stopEvent(), nil
			}
			m.restart()
			list := names(6)
			m.begin(list...)
			if n := m.survive(); n > 5 || n < 1 {
				t.Errorf("it took %d restarts", n)
			}
			want := all(list)
			want["h3"] = message
			m.want(want)
			if mode == host.ResourceFail && d.made != 1 {
				t.Errorf("the call was made %d times", d.made)
			}
		})
	}
}

// Of ten runs of one step that ends the server, each is blocked after it has died alone;
// those after the first one at once. Runs of other workflows end.
func TestManyRunsOfOneCulprit(t *testing.T) {
	m := newMortal(t, 2)
	bad := names(10)
	m.modules["good"] = newSimModules(t, map[string]string{"good": strings.Replace(oneStep, `"one"`, `"good"`, 1)})["good"]
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.Workflow == "one" {
			return abi.StepOutput{}, m.die(deaths.DeathUnknown)
		}
		return stopEvent(), nil
	}
	m.begin(bad...)
	n := m.survive()
	for _, h := range bad {
		if run := m.record(t, h); run.Blocked == nil || run.Blocked.Code != host.BlockedHostCrash {
			t.Errorf("run %s is %s, %+v", h, run.Status, run.Blocked)
		}
	}
	if most := 4 + 2*(len(bad)-1); n > most {
		t.Errorf("it took %d restarts, want %d at most", n, most)
	}
	if _, err := await(m.bench, func() (host.Run, error) {
		return m.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "good", HandlerID: "good"})
	}); err != nil {
		t.Fatal(err)
	}
	m.survive()
	m.want(map[string]string{"good": ""})
}

// Somebody kills the server at any moment, also while suspects run alone, and in the
// pauses. A long innocent step is not blocked, and ends when the killing does.
func TestKillsAtRandomBlockNobody(t *testing.T) {
	seeds := uint64(20)
	if raced {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { killAtRandom(t, seed) })
	}
}

func killAtRandom(t *testing.T, seed uint64) {
	m := newMortal(t, 2)
	rnd := rand.New(rand.NewPCG(seed, 7))
	killed := func() bool { return !m.kill.IsZero() && !m.clock().Before(m.kill) }
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		units := uint64(500_000)
		if g.in.Run.SessionID < "h3" {
			units = 3_000_000_000 // a second
		}
		for ; units > 0; units -= slice {
			m.advance(slice * time.Nanosecond / 3)
			if killed() && !m.dead() {
				return abi.StepOutput{}, m.die(deaths.DeathUnknown)
			}
			if err := g.burn(t.Context(), slice); err != nil {
				return abi.StepOutput{}, err
			}
		}
		return stopEvent(), nil
	}
	list := names(8)
	m.begin(list...)
	for m.deaths < 100 {
		m.kill = m.clock().Add(time.Duration(rnd.IntN(600)) * time.Millisecond)
		if m.live() {
			_ = m.die(deaths.DeathUnknown) // while it is idle
		}
		m.restart()
	}
	m.kill = time.Time{}
	if n := m.survive(); n > 0 {
		t.Errorf("the server ended %d times by itself", n)
	}
	m.want(all(list))
	if p := m.box.phases; p[deaths.PhaseApart] == 0 || p[deaths.PhaseControl] == 0 {
		t.Errorf("the deaths were in phases %v", p)
	}
}

// The system kills the server twice for its memory: it runs half as many steps at a
// time, and after a while as many as before.
func TestShortOfMemory(t *testing.T) {
	m := newMortal(t, 4)
	cores := func() int { return m.sched.Load().Cores }
	if m.sched.Reduced() != "" {
		t.Error("a new server does less")
	}
	for i, want := range []int{4, 4, 2} {
		if got := cores(); got != want {
			t.Errorf("after %d deaths there are %d cores, want %d", i, got, want)
		}
		if i < 2 {
			_ = m.die(deaths.DeathMemory)
			m.restart()
		}
	}
	if text := m.sched.Reduced(); !m.spares || !strings.HasPrefix(text, "2 of 4 steps run at a time") {
		t.Errorf("after two deaths %q is said, spared %t", text, m.spares)
	}
	list := names(6)
	m.begin(list...)
	m.survive()
	m.want(all(list))
	m.advance(11 * time.Minute)
	m.live()
	if text := m.sched.Reduced(); m.spares || text != "" {
		t.Errorf("after ten minutes %q is said, spared %t", text, m.spares)
	}
	if got := cores(); got != 4 {
		t.Errorf("after ten minutes there are %d cores", got)
	}
	if leak := m.sched.Leak(); strings.Contains(leak, "tokens") {
		t.Error(leak)
	}
}

// A store that is opened again in the process is no death, and suspects stay suspected.
func TestReopeningIsNoDeath(t *testing.T) {
	m := newMortal(t, 2)
	stuck := true
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if stuck {
			return abi.StepOutput{}, context.Canceled // the server ends before it does
		}
		return stopEvent(), nil
	}
	m.begin("h0")
	for range 10 {
		m.live()
		m.after = m.sched
		m.advance(time.Second)
		m.open(t)
	}
	m.after = nil
	if n := m.sched.Load().Suspects; n != 0 {
		t.Errorf("%d are suspected", n)
	}
	stuck = false
	m.live()
	m.want(map[string]string{"h0": ""})
}

// farewells is a server's log that ends the process by a guest's last words: they are
// logged when the end of the run is settled.
type farewells struct {
	io.Writer
	m *mortal
}

func (f farewells) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "farewell") {
		_ = f.m.die(deaths.DeathUnknown)
	}
	return f.Writer.Write(b)
}

// What the server does at the end of a run is the run's doing.
func TestGuiltyInItsEndIsBlocked(t *testing.T) {
	m := newMortal(t, 2)
	m.log = farewells{t.Output(), m}
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		var err error
		if g.in.Run.SessionID == "h3" {
			_, err = g.do(abi.ImportLog, []any{4, "farewell"})
		}
		return stopEvent(), err
	}
	m.restart()
	list := names(6)
	m.begin(list...)
	if n := m.survive(); n < 3 || n > 5 {
		t.Errorf("it took %d restarts", n)
	}
	want := all(list)
	want["h3"] = "at host call 1 (log)"
	m.want(want)
}

// Two runs end the server only together, as by their memory: neither is blocked, and
// both end, one after the other.
func TestGuiltyTogetherAreNotBlocked(t *testing.T) {
	m := newMortal(t, 2)
	m.guest = func(context.Context, *call) (abi.StepOutput, error) {
		m.work() // what runs beside this guest
		if m.life.holds(deaths.CoreRun, "") > 1 {
			return abi.StepOutput{}, m.die(deaths.DeathMemory)
		}
		return stopEvent(), nil
	}
	list := names(2)
	m.begin(list...)
	if n := m.survive(); n == 0 {
		t.Error("the server did not end")
	}
	m.want(all(list))
}

// Without slots nothing is noted, and nobody is suspected.
func TestNoSlots(t *testing.T) {
	m := newMortal(t, 2)
	m.box.refuses = true
	ends := 0
	m.guest = func(context.Context, *call) (abi.StepOutput, error) {
		if ends++; ends <= 5 {
			return abi.StepOutput{}, m.die(deaths.DeathCrash)
		}
		return stopEvent(), nil
	}
	m.begin("h0")
	if n := m.survive(); n != 5 {
		t.Errorf("it took %d restarts", n)
	}
	m.want(map[string]string{"h0": ""})
	if m.sched.Counters().Unnoted == 0 {
		t.Error("nothing is counted")
	}
}

// A suspect that is not back by the end of its window goes on beside the others, and
// stands still while the next suspect runs alone.
func TestWhoOutlastsItsWindow(t *testing.T) {
	m := newMortal(t, 2)
	inside, goOn := make(chan struct{}), make(chan struct{})
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		m.work() // what runs beside this guest
		if m.life.holds(deaths.CoreRun, "") == 2 {
			return abi.StepOutput{}, m.die(deaths.DeathUnknown)
		}
		return abi.StepOutput{}, errGone
	}
	list := names(2)
	m.begin(list...)
	if m.live() {
		t.Fatal("the server did not end")
	}
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Run.SessionID == "h0" {
			close(inside)
			<-goOn
			if err := g.burn(t.Context(), 5_000_000); err != nil { // some turns
				return abi.StepOutput{}, err
			}
		} else if m.life.in() == deaths.PhaseApart && m.life.holds(deaths.CoreRun, "") != 1 {
			t.Error("it does not run alone")
		}
		return stopEvent(), nil
	}
	m.restart()
	waitFor := func(there func() bool) {
		for !there() {
			for _, w := range m.step() {
				go w()
			}
			m.commit()
			runtime.Gosched()
		}
	}
	waitFor(func() bool {
		select {
		case <-inside:
			return true
		default:
			return false
		}
	})
	if n := m.sched.Trials(); n != 2 {
		t.Errorf("%d suspects are to be tried yet, want both", n)
	}
	m.advance(time.Second)
	if work := m.step(); len(work) > 0 || m.sched.Trials() != 2 {
		t.Error("the window of a guest that has got nothing of its core is over after a second")
	}
	m.advance(5 * time.Second) // beyond all patience
	work := m.step()           // of the next suspect
	close(goOn)
	for m.life.holds(deaths.CoreRun, "") > 0 {
		runtime.Gosched()
	}
	for _, w := range work {
		go w()
	}
	waitFor(func() bool {
		return m.record(t, "h0").Status == host.StatusCompleted && m.record(t, "h1").Status == host.StatusCompleted && m.sched.Load().Running == 0
	})
}
