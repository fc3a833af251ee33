package hosttest_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/limit"
)

const (
	tenantGood    = "good"
	tenantHostile = "hostile"
	// ahead is the most units by which the hostile tenant may lead while both tenants
	// want the only core: four turns of the scheduler, of 500,000 units each, plus the
	// units burnt up to the next checkpoint, plus the fixed price of an attempt's start
	// (see scheduler/fairness_test.go).
	ahead = 4*(500_000+50_000) + 100_000
)

// attack is a module of the corpus that fails when it is invoked, and the expected codes.
type attack struct {
	name  string
	wasm  []byte
	codes []string
}

// attacks reads the modules of testdata/hostile whose headers promise a failure at their
// invocation, within the default limits.
func attacks(t *testing.T) (all []attack) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(hosttest.Root(), "testdata", "hostile", "*.wat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(string(text), "\n(module")
		_, wants, _ := strings.Cut(header, "\n;; wants: ")
		codes, _, _ := strings.Cut(wants, " ")
		if !strings.Contains(header, "\n;; at: invoke") || strings.HasPrefix(codes, "ok") || strings.Contains(header, "\n;; limits: ") || strings.Contains(header, "\n;; answer: ") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(path), ".wat")
		all = append(all, attack{name, hostile(t, name), strings.Split(codes, "|")})
	}
	return all
}

// meter measures how two tenants share a core while both want it.
type meter struct {
	h          *hosttest.Host
	work       uint64 // units of one run of the good tenant
	runs       int
	good, evil uint64 // units burnt while the good tenant's guest was computing
}

// usage returns what both tenants have burnt, read at one moment of the good tenant.
func (m *meter) usage() (good, evil uint64) {
	for {
		good, evil = m.h.Runs.Usage(tenantGood).Fuel, m.h.Runs.Usage(tenantHostile).Fuel
		if m.h.Runs.Usage(tenantGood).Fuel == good {
			return good, evil
		}
	}
}

// run makes one run of the good tenant. It counts from the first turn of its guest to the
// last but two, so that it counts only while the guest computes.
func (m *meter) run(t *testing.T) {
	began, _ := m.usage()
	ended := make(chan host.Run, 1)
	go func() { ended <- runOf(t, m.h, tenantGood) }()
	var first, last [2]uint64
	for {
		select {
		case r := <-ended:
			if r.Status != host.StatusCompleted || r.Fuel != m.work {
				t.Errorf("the good tenant's run came to %+v, alone to %d units", r, m.work)
			}
			if evil, good := last[1]-first[1], last[0]-first[0]; evil > good+ahead {
				t.Errorf("the hostile tenant burnt %d units while the good one burnt %d, at most %d more are fair", evil, good, ahead)
			}
			m.runs++
			m.good += last[0] - first[0]
			m.evil += last[1] - first[1]
			return
		default:
		}
		good, evil := m.usage()
		switch {
		case good == began || good > began+m.work-1_500_000:
		case first[0] == 0:
			first = [2]uint64{good, evil}
			last = first
		default:
			last = [2]uint64{good, evil}
		}
		runtime.Gosched()
	}
}

// runOf runs a tenant's only workflow to its end.
func runOf(t *testing.T, h *hosttest.Host, tenant string) host.Run {
	t.Helper()
	r, err := h.Runs.Start(t.Context(), host.StartRequest{Tenant: tenant, Workflow: "hostile", Wait: true})
	if err != nil {
		t.Errorf("start a run of %s: %v", tenant, err)
	}
	return r
}

// Each hostile module fails its own runs by name, through the real scheduler. Meanwhile a
// well-behaved plugin of another tenant gets half of the only core. The test counts units
// and measures no time.
func TestHostileTenantGetsItsShareOnly(t *testing.T) {
	suite.NotShort(t, "plays the hostile modules")
	limits, err := limit.Parse([]byte(`{"tenants": {"hostile": {"fuel": 20000000, "host_calls": 1000, "log_lines": 100, "log_bytes": "256KiB", "memory_bytes": "8MiB"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{Tokens: 1, Limits: limits})
	if _, _, err := h.Plugins.Put(t.Context(), tenantGood, "good", hostile(t, "good_worker")); err != nil {
		t.Fatal(err)
	}
	alone := runOf(t, h, tenantGood)
	m := &meter{h: h, work: alone.Fuel}
	if alone.Status != host.StatusCompleted || m.work < 20_000_000 {
		t.Fatalf("alone it comes to %+v", alone)
	}
	corpus := attacks(t)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			m.run(t)
		}
	}()
	var refused []string // the limits of a tenant also apply to its uploads
	for _, a := range corpus {
		if _, _, err := h.Plugins.Put(t.Context(), tenantHostile, "hostile", a.wasm); err != nil {
			if refused = append(refused, a.name); host.CodeOf(err) != host.CodeInvalidPlugin {
				t.Errorf("%s: %v", a.name, err)
			}
			continue
		}
		ends := make(chan host.Run)
		for range 2 {
			go func() { ends <- runOf(t, h, tenantHostile) }()
		}
		for range 2 {
			r := <-ends
			found := false
			for _, code := range a.codes {
				found = found || r.ErrorCode == code
			}
			if r.Status != host.StatusFailed || !found {
				t.Errorf("%s: %+v, want the code %v", a.name, r, a.codes)
			}
		}
	}
	stop()
	<-stopped
	if len(refused) > 5 {
		t.Errorf("refused are %q: they fail nowhere", refused)
	}
	if m.runs < 10 || m.evil < 2*m.work {
		t.Errorf("%d runs, beside %d hostile units: that shows nothing", m.runs, m.evil)
	}
	t.Logf("%d modules, refused %q; in %d runs the good tenant burnt %d units, the hostile one %d meanwhile; %+v", len(corpus), refused, m.runs, m.good, m.evil, h.Runs.Counters())
}

// An output that the sandbox accepts, but whose events are invalid, fails its run by
// name.
func TestHostileEvents(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	paths, err := filepath.Glob(filepath.Join(hosttest.Root(), "testdata", "hostile", "event_*.wat"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no events: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".wat")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(text), "\n;; host: ")
		line, _, _ = strings.Cut(line, "\n")
		code, part, _ := strings.Cut(line, " ")
		if _, _, err := h.Plugins.Put(t.Context(), tenantHostile, "hostile", hostile(t, name)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r := runOf(t, h, tenantHostile); r.ErrorCode != code || part == "" || !strings.Contains(r.Error, part) {
			t.Errorf("%s: %s: %q, want %s", name, r.ErrorCode, r.Error, line)
		}
	}
}
