package hosttest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// Size of the chaos, unless WEFT_CHAOS says how long it lasts: so many rounds of faults.
const chaosRounds = 5

// Most time that a fault lasts. In a chaos that lasts for a given time it may be a minute.
const (
	shortFault = 3 * clusterLease
	longFault  = time.Minute
)

// TestChaos plays rounds of faults on a cluster of three nodes, whose networks fail as well:
// in each round one or two of the nodes are killed, stopped, replaced, or lose their
// connections to PostgreSQL or to the other nodes (cut, half-open or slow), or PostgreSQL is
// killed. Its clients come through a proxy that gives each connection to another node, and
// do not know of the faults. In addition to what [TestStorm] checks, the following must hold:
//
//   - histories of states, shared counters and kept values are linearizable, whichever nodes
//     were asked, and a request that was refused without Weft-Outcome did nothing;
//   - a call outside in the mode fail is made at most once;
//   - when the faults have ceased, a node owns the sessions.
func TestChaos(t *testing.T) {
	t.Parallel() // its time is waiting
	rnd := seed(t)
	var lasts time.Duration
	fault := shortFault
	if text := os.Getenv("WEFT_CHAOS"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		fault = longFault
	}
	c := beginChaos(t, rnd)
	counts := map[string]int{}
	for end, round := time.Now().Add(lasts), 0; round < chaosRounds || time.Now().Before(end); round++ {
		pause(t, rnd, time.Second)
		c.round(rnd, fault, counts)
		c.n.awaitOwner()
		if t.Failed() {
			t.Fatalf("in round %d: %v", round+1, counts)
		}
	}
	c.s.end(c.s.unblocked)
	c.s.unblocked()
	c.s.verify()
	wantWeft(t, "no faults", "check", "--online", "--store", c.pg.URL)
	c.history.check(t)
	c.outside.check(t)
	t.Logf("%v; %d runs, %d requests sent again, %d events seen", counts, c.s.runs.Load(), c.s.again.Load(), c.s.seen.Load())
}

// chaos is a cluster, its faults and its clients.
type chaos struct {
	t       *testing.T
	pg      *pgtest.Server
	n       *nodes
	s       *storm
	history *histories
	outside *outsideCalls
	names   int // nodes that were named so far
}

func beginChaos(t *testing.T, rnd *rand.Rand) *chaos {
	c := &chaos{t: t, pg: pgtest.Own(t), history: &histories{began: time.Now()}, outside: newOutsideCalls(t)}
	file := filepath.Join(t.TempDir(), "resources.json")
	write(t, file, fmt.Sprintf(`{"resources": {
	  "shelf": {"kind": "kv", "settings": {"value_bytes": 1048576}, "grants": [{"tenant": "*", "workflow": "*"}]},
	  "web": {"kind": "http", "mode": "fail",
	    "settings": {"base_url": "%s/", "networks": ["127.0.0.1"], "allow": [{"url": "%[1]s/", "methods": ["POST"]}]},
	    "grants": [{"tenant": "*", "workflow": "*"}]}}}`, c.outside.URL))
	c.n = &nodes{t: t, store: c.pg.URL, args: []string{"--resources", file, "--drain", "5s"}, linked: true}
	c.n.begin(3)
	c.s = &storm{t: t, p: &hosttest.Process{}}
	c.s.p.URL = c.n.url
	c.s.url.Store(&c.n.url)
	c.n.awaitOwner()
	put(t, c.s.p, "scenes", hosttest.BuildPlugin(t, "scenes"))
	put(t, c.s.p, "fetch", hosttest.Plugin(t, "fetch-go"))
	c.s.begin(rnd)
	ctx, stop := context.WithCancel(t.Context())
	stopStorm := c.s.stop
	c.s.stop = func() { stop(); stopStorm() }
	t.Cleanup(stop)
	for i, work := range []func(*chaosClient) error{
		(*chaosClient).registers, (*chaosClient).registers, (*chaosClient).registers,
		(*chaosClient).increments, (*chaosClient).increments, (*chaosClient).tallies, (*chaosClient).tallies, (*chaosClient).fetches,
	} {
		k := &chaosClient{of: c, id: i, stormClient: stormClient{storm: c.s, name: fmt.Sprint("chaos", i), rnd: rand.New(rand.NewPCG(rnd.Uint64(), 1))},
			// So that the proxy chooses a node for each request, and a node that hangs is left.
			http: http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}}
		c.s.clients.Go(func() {
			for ; ctx.Err() == nil; k.n++ {
				if err := work(k); err != nil {
					t.Errorf("%s, request %d: %v", k.name, k.n, err)
					return
				}
			}
		})
	}
	return c
}

// serveLinked starts a node whose connections go over links.
func (n *nodes) serveLinked(p *clusterProcess, args []string) {
	n.t.Helper()
	store, err := url.Parse(n.store)
	if err != nil {
		n.t.Fatal(err)
	}
	p.database = newLink(n.t, store.Host)
	store.Host = p.database.addr
	for range 5 {
		// Another process may take the port before the node does.
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			n.t.Fatal(err)
		}
		p.peer = newLink(n.t, l.Addr().String())
		if err := l.Close(); err != nil {
			n.t.Fatal(err)
		}
		var served bool
		if p.Process, served = hosttest.TryServeBy(n.t, nil, p.data, append(slices.Clone(args),
			"--store", store.String(), "--cluster-addr", p.peer.to, "--advertise", "https://"+p.peer.addr)...); served {
			return
		}
		p.Wait()
	}
	n.t.Fatalf("node %s did not start:\n%s", p.name, p.Log())
}

// round plays one or two faults at the same time, and ends them.
func (c *chaos) round(rnd *rand.Rand, most time.Duration, counts map[string]int) {
	list := slices.Clone(c.n.list)
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if rnd.IntN(2) == 0 { // the owner's faults matter most
		if owner := c.n.awaitOwner(); owner != nil {
			list = append([]*clusterProcess{owner}, slices.DeleteFunc(list, func(p *clusterProcess) bool { return p == owner })...)
		}
	}
	var ends []func()
	for _, p := range list[:1+rnd.IntN(2)] {
		what, end := c.fail(p, rnd)
		counts[what]++
		ends = append(ends, end)
		pause(c.t, rnd, time.Second)
	}
	if rnd.IntN(5) == 0 {
		counts["database"]++
		c.pg.Crash(c.t)
		pause(c.t, rnd, time.Second)
		c.pg.Again(c.t)
	}
	if rnd.IntN(8) != 0 {
		most = shortFault // long enough for another node to take over, and to answer meanwhile
	}
	pause(c.t, rnd, most)
	rnd.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	for _, end := range ends {
		end()
	}
}

// fail makes a node fail. end repairs or replaces the node.
func (c *chaos) fail(p *clusterProcess, rnd *rand.Rand) (what string, end func()) {
	switch rnd.IntN(5) {
	case 0:
		c.n.remove(p)
		p.Kill(c.t)
		return "kill", func() { c.n.start(p.name, p.data) }
	case 1:
		p.Signal(c.t, syscall.SIGSTOP)
		return "stop", func() { p.Signal(c.t, syscall.SIGCONT) }
	case 2:
		c.n.remove(p) // as a load balancer does that asks /ready
		p.Signal(c.t, syscall.SIGTERM)
		return "leave", func() {
			p.Wait()
			c.names++
			c.n.start(fmt.Sprint("m", c.names), c.t.TempDir())
		}
	case 3:
		fault := linkCut + linkFault(rnd.IntN(int(linkFaults-linkCut)))
		p.database.set(fault)
		return "database " + fault.String(), func() { p.database.set(linkWorks) }
	default:
		fault := linkCut + linkFault(rnd.IntN(int(linkFaults-linkCut)))
		p.peer.set(fault)
		return "peer " + fault.String(), func() { p.peer.set(linkWorks) }
	}
}

// chaosClient is a client whose requests are part of the history.
type chaosClient struct {
	stormClient

	of   *chaos
	id   int
	http http.Client
}

// outcome is what a client knows about a request.
type outcome int

const (
	done outcome = iota
	refused
	unknown
)

// ask sends a request once.
func (c *chaosClient) ask(method, path, kind, body string) (outcome, []byte, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, *c.url.Load()+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", kind)
	res, err := c.http.Do(req)
	if err != nil {
		return unknown, nil, nil //nolint:nilerr // faults are expected
	}
	out, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	switch {
	case err != nil:
		return unknown, nil, nil //nolint:nilerr // faults are expected
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Weft-Outcome") == "":
		return refused, nil, nil
	case res.StatusCode == http.StatusServiceUnavailable:
		return unknown, nil, nil
	case res.StatusCode >= 300:
		return 0, nil, fmt.Errorf("%s %s: %d %s", method, path, res.StatusCode, out)
	}
	return done, out, nil
}

// perRegister is how many requests of a client use the same session.
const perRegister = 20

// registers writes numbers to a session that all such clients share, and reads them. It does
// not repeat a write.
func (c *chaosClient) registers() error {
	name := fmt.Sprint("register", c.n/perRegister)
	path := "/sessions/" + name + "/state"
	if c.n%perRegister == 0 { // the first of the clients makes the session
		if err := c.makeSession(name); err != nil {
			return err
		}
	}
	op := numberOp{object: name, kind: opRead}
	method, body := http.MethodGet, ""
	if c.rnd.IntN(2) == 0 {
		op.kind, op.value = opWrite, int64(c.id*1_000_000+c.n+1)
		method, body = http.MethodPatch, fmt.Sprintf(`{"x": %d}`, op.value)
	}
	call := c.of.history.now()
	known, out, err := c.ask(method, path, "application/merge-patch+json", body)
	if err != nil {
		return err
	}
	var state struct{ X int64 }
	if known == done {
		if err := json.Unmarshal(out, &state); err != nil {
			return fmt.Errorf("%s: %w", out, err)
		}
	}
	c.of.history.add(c.id, call, op, state.X, known)
	return nil
}

// makeSession makes a session, unless another client has made it.
func (c *chaosClient) makeSession(name string) error {
	for ; ; c.backOff() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, *c.url.Load()+"/sessions/"+name, strings.NewReader(`{"state": {"x": 0}}`))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("If-None-Match", "*")
		res, err := c.http.Do(req)
		if err != nil {
			continue
		}
		out, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		switch {
		case err != nil || res.StatusCode == http.StatusServiceUnavailable:
		case res.StatusCode == http.StatusCreated || res.StatusCode == http.StatusPreconditionFailed:
			return nil
		default:
			return fmt.Errorf("session %s: %d %s", name, res.StatusCode, out)
		}
	}
}

// increments runs a counter in a session that all such clients share.
func (c *chaosClient) increments() error {
	const name = "shared"
	op := numberOp{object: name, kind: opIncrement}
	call := c.of.history.now()
	if c.n > 0 && c.rnd.IntN(2) == 0 { // the session exists
		op.kind = opRead
		known, out, err := c.ask(http.MethodGet, "/sessions/"+name+"/state", "", "")
		if err != nil {
			return err
		}
		var state struct{ Count int64 }
		if known == done {
			if err := json.Unmarshal(out, &state); err != nil {
				return fmt.Errorf("%s: %w", out, err)
			}
		}
		c.of.history.add(c.id, call, op, state.Count, known)
		return nil
	}
	result, err := c.run("counter", in(name, fields{}))
	if err != nil {
		return err
	}
	count, err := strconv.ParseInt(result, 10, 64)
	c.of.history.add(c.id, call, op, count, done)
	return err
}

// tallies counts under keys of a resource that all such clients share.
func (c *chaosClient) tallies() error {
	op := numberOp{object: "shelf", kind: opIncrement}
	call := c.of.history.now()
	if c.rnd.IntN(2) == 0 {
		op.kind = opRead
		known, out, err := c.ask(http.MethodGet, "/resources/shelf/keys?prefix=sum&values=true", "", "")
		if err != nil {
			return err
		}
		var page struct{ Keys []struct{ Value int64 } }
		if known == done {
			if err := json.Unmarshal(out, &page); err != nil {
				return fmt.Errorf("%s: %w", out, err)
			}
		}
		var sum int64
		if len(page.Keys) == 1 {
			sum = page.Keys[0].Value
		}
		c.of.history.add(c.id, call, op, sum, known)
		return nil
	}
	result, err := c.run("scenes", start(fields{"what": "tally", "text": c.name}))
	var got [2]int64
	if err == nil {
		err = json.Unmarshal([]byte(result), &got)
	}
	c.of.history.add(c.id, call, op, got[1], done)
	return err
}

// fetches makes a call outside that must not be made twice.
func (c *chaosClient) fetches() error {
	handler, err := c.begin("fetch", start(fields{"path": fmt.Sprint("call-", c.n), "method": "POST", "body": "tea"}))
	if err != nil {
		return err
	}
	return c.watch(handler)
}

// histories is what clients have asked and were answered.
type histories struct {
	began time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

type numberOp struct {
	object string
	kind   string
	value  int64 // of a write
}

// Kinds of operations on a number.
const (
	opRead      = "read"
	opWrite     = "write"
	opIncrement = "increment" // gives the number after it
)

func (h *histories) now() int64 { return int64(time.Since(h.began)) }

// add adds a request that ends now. Reads without an answer, and what was refused, did
// nothing. A write whose outcome is unknown may be done at any time after.
func (h *histories) add(client int, call int64, op numberOp, result int64, known outcome) {
	end := h.now()
	switch {
	case known == refused || known == unknown && op.kind == opRead:
		return
	case known == unknown:
		end, result = math.MaxInt64, op.value
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: op, Call: call, Output: result, Return: end})
}

// numbers is the model of objects that are numbers.
var numbers = porcupine.Model{
	Partition: func(ops []porcupine.Operation) (parts [][]porcupine.Operation) {
		by := map[string]int{}
		for _, op := range ops {
			name := op.Input.(numberOp).object
			i, there := by[name]
			if !there {
				i = len(parts)
				by[name], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	},
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		now, op, result := state.(int64), input.(numberOp), output.(int64)
		switch op.kind {
		case opWrite:
			return result == op.value, result
		case opIncrement:
			return result == now+1, result
		default:
			return result == now, now
		}
	},
	DescribeOperation: func(input, output any) string {
		op := input.(numberOp)
		return fmt.Sprintf("%s %s %d: %v", op.kind, op.object, op.value, output)
	},
}

// check wants the history to be one that a single number for each object could have.
func (h *histories) check(t *testing.T) {
	t.Helper()
	for _, ops := range numbers.Partition(h.ops) {
		if porcupine.CheckOperations(numbers, ops) {
			continue
		}
		slices.SortFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var text strings.Builder
		for _, op := range ops {
			fmt.Fprintf(&text, "%12s to %12s, client %d: %s\n", time.Duration(op.Call), time.Duration(op.Return), op.ClientId, numbers.DescribeOperation(op.Input, op.Output))
		}
		t.Errorf("not linearizable:\n%s", &text)
	}
	t.Logf("%d requests in the history", len(h.ops))
}

// The check of histories finds an old answer, a lost write, and a number that is given twice.
func TestHistoryCheckFindsFaults(t *testing.T) {
	write := func(v int64) numberOp { return numberOp{kind: opWrite, value: v} }
	op := func(call, end int64, op numberOp, result int64) porcupine.Operation {
		return porcupine.Operation{Input: op, Call: call, Output: result, Return: end}
	}
	for name, tt := range map[string]struct {
		ops  []porcupine.Operation
		good bool
	}{
		"right":           {[]porcupine.Operation{op(1, 4, write(1), 1), op(2, 3, numberOp{kind: opRead}, 0), op(5, 6, numberOp{kind: opRead}, 1)}, true},
		"late":            {[]porcupine.Operation{op(1, math.MaxInt64, write(1), 1), op(2, 3, numberOp{kind: opRead}, 0), op(5, 6, numberOp{kind: opRead}, 1)}, true},
		"an old answer":   {[]porcupine.Operation{op(1, 2, write(1), 1), op(3, 4, numberOp{kind: opRead}, 0)}, false},
		"a lost write":    {[]porcupine.Operation{op(1, math.MaxInt64, write(1), 1), op(2, 3, numberOp{kind: opRead}, 1), op(4, 5, numberOp{kind: opRead}, 0)}, false},
		"given twice":     {[]porcupine.Operation{op(1, 2, numberOp{kind: opIncrement}, 1), op(3, 4, numberOp{kind: opIncrement}, 1)}, false},
		"given to nobody": {[]porcupine.Operation{op(1, 2, numberOp{kind: opIncrement}, 2)}, false},
	} {
		if good := porcupine.CheckOperations(numbers, tt.ops); good != tt.good {
			t.Errorf("%s: %v", name, good)
		}
	}
}

// outsideCalls is a server outside that counts the calls of each path.
type outsideCalls struct {
	*httptest.Server

	mu    sync.Mutex
	calls map[string]int
}

func newOutsideCalls(t *testing.T) *outsideCalls {
	o := &outsideCalls{calls: map[string]int{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.calls[r.URL.Path]++
		o.mu.Unlock()
		// So that some calls are under way when their node fails.
		timer := time.NewTimer(50 * time.Millisecond)
		<-timer.C
	}))
	t.Cleanup(o.Close)
	return o
}

func (o *outsideCalls) check(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for path, n := range o.calls {
		if n > 1 {
			t.Errorf("%s was called %d times", path, n)
		}
	}
	if len(o.calls) == 0 {
		t.Error("no call came outside")
	}
	t.Logf("%d calls outside", len(o.calls))
}
