package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// The two tenants of the neighbour's test.
const (
	tenantGood = iota
	tenantHostile
	tenants
)

// handovers is one run token that two tenants share. At each checkpoint, and at the
// end of an invocation, it goes to the other tenant if that waits. It counts
// what the hostile one burns while the good one waits.
type handovers struct {
	mu      sync.Mutex // guards what follows; nothing is called under it
	held    bool
	waiting [tenants][]chan struct{} // closed when the token is theirs; the first came first

	burnt    uint64 // by the hostile tenant since the good one began to wait
	most     uint64 // of burnt, in any wait
	granted  [tenants]int
	switches int // handovers of the good tenant right after the hostile one
	last     int // who had the token last
}

// take waits for the token.
func (t *handovers) take(tenant int) {
	t.mu.Lock()
	if !t.held {
		t.grant(tenant)
		t.mu.Unlock()
		return
	}
	mine := t.wait(tenant)
	t.mu.Unlock()
	<-mine
}

// wait queues for the token. The caller holds mu.
func (t *handovers) wait(tenant int) chan struct{} {
	if tenant == tenantGood {
		t.burnt = 0
	}
	mine := make(chan struct{})
	t.waiting[tenant] = append(t.waiting[tenant], mine)
	return mine
}

// grant gives the token to a tenant. The caller holds mu.
func (t *handovers) grant(tenant int) {
	t.held = true
	t.granted[tenant]++
	if tenant == tenantGood {
		t.most = max(t.most, t.burnt)
		if t.last == tenantHostile {
			t.switches++
		}
	}
	t.last = tenant
}

// pass gives the token to who is due after a tenant, if anybody waits. The
// caller holds mu and the token.
func (t *handovers) pass(from int) {
	t.held = false
	for _, tenant := range []int{1 - from, from} {
		if queue := t.waiting[tenant]; len(queue) > 0 {
			t.waiting[tenant] = queue[1:]
			t.grant(tenant)
			close(queue[0])
			return
		}
	}
}

// give gives the token back after an invocation, with the units burnt since its
// last checkpoint.
func (t *handovers) give(tenant int, units uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count(tenant, units)
	t.pass(tenant)
}

// count notes what was burnt. The caller holds mu.
func (t *handovers) count(tenant int, units uint64) {
	if tenant == tenantHostile && len(t.waiting[tenantGood]) > 0 {
		t.burnt += units
	}
}

// turn is the token of one invocation: a host.Token. Its goroutine uses it.
type turn struct {
	of     *handovers
	tenant int
	told   uint64 // units
	most   uint64 // units between two checkpoints
}

func (u *turn) Checkpoint(units uint64) error {
	u.told, u.most = u.told+units, max(u.most, units)
	u.of.mu.Lock()
	u.of.count(u.tenant, units)
	if len(u.of.waiting[1-u.tenant]) == 0 {
		u.of.mu.Unlock()
		return nil
	}
	mine := u.of.wait(u.tenant)
	u.of.pass(u.tenant)
	u.of.mu.Unlock()
	<-mine
	return nil
}

// run makes one invocation of a tenant, with the token in hand.
func (t *handovers) run(ctx context.Context, b bench, tenant int, inv host.Invocation) (host.InvocationResult, error) {
	t.take(tenant)
	u := &turn{of: t, tenant: tenant}
	inv.Token = u
	res, err := b.Invoke(ctx, inv)
	t.give(tenant, res.Fuel-min(u.told, res.Fuel))
	if err == nil && u.most > sliceUnits+callUnits {
		err = fmt.Errorf("%d units between two checkpoints", u.most)
	}
	return res, err
}

// neighbour is the good tenant: it invokes its plugin until it is stopped, and
// compares each result with the first.
type neighbour struct {
	b         bench
	handovers *handovers
	inv       host.Invocation
	first     host.InvocationResult
	results   int
}

func newNeighbour(t *testing.T, b bench, handovers *handovers) *neighbour {
	t.Helper()
	wasm := hostile(t, "good_neighbour")
	digest := b.library.add(wasm)
	if _, problems := b.Inspect(t.Context(), wasm, host.Limits{}); len(problems) > 0 {
		t.Fatal(problems)
	}
	inv := b.invocation(digest, []byte("twelve bytes"))
	first, err := b.Invoke(t.Context(), inv)
	if err != nil || first.Err != nil || first.Fuel < 4*sliceUnits {
		t.Fatalf("alone it comes to %+v, %v", first, err)
	}
	return &neighbour{b: b, handovers: handovers, inv: inv, first: first}
}

// work runs until stop is closed.
func (n *neighbour) work(ctx context.Context, stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		inv := n.inv
		inv.Calls = &answering{answer: []byte{0xf6}}
		res, err := n.handovers.run(ctx, n.b, tenantGood, inv)
		if err != nil {
			return err
		}
		if !bytes.Equal(res.Output, n.first.Output) || res.Fuel != n.first.Fuel || res.Err != nil {
			return fmt.Errorf("invocation %d came to %+v, alone to %+v", n.results, res, n.first)
		}
		n.results++
	}
}

// rampage has some goroutines of the hostile tenant take the corpus through the
// sandbox, each module once, in any order.
func rampage(ctx context.Context, t *testing.T, b bench, handovers *handovers, corpus []*specimen, random *rand.Rand) (invocations int) {
	const goroutines = 4
	todo := make(chan *specimen, len(corpus))
	for _, i := range random.Perm(len(corpus)) {
		todo <- corpus[i]
	}
	close(todo)
	var mu sync.Mutex // guards invocations
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for s := range todo {
				for _, fault := range s.examine(ctx, b, func(inv host.Invocation) (host.InvocationResult, error) {
					mu.Lock()
					invocations++
					mu.Unlock()
					return handovers.run(ctx, b, tenantHostile, inv)
				}) {
					t.Error(fault)
				}
			}
		})
	}
	wg.Wait()
	return invocations
}

// footprint is what is in use when all that can be given back has been: bytes of Go's
// heap, and memories of guests that are lent.
type footprint struct {
	heap uint64
	lent int64
}

func measure(b bench) footprint {
	for range idleInstance + 1 { // spares go, as those of idle modules do
		b.pool.age(idleInstance)
	}
	runtime.GC()
	runtime.GC() // what finalizers have freed
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return footprint{stats.HeapAlloc, b.memories.Counts().Lent}
}

func (f footprint) String() string {
	return fmt.Sprintf("%d MiB of heap, %d memories", f.heap>>20, f.lent)
}

// While the hostile corpus runs, a well-behaved plugin of another tenant gets
// its turn after as much work of the hostile one as fits between two
// checkpoints; its results do not change, and nothing is left behind.
func TestNeighbour(t *testing.T) {
	suite.NotShort(t, "plays the hostile modules")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	box, _ := corpusLimits()
	b := corpusBench(t, func(c *Config) { c.Limits, c.Spares, c.PoolBytes = box, 1, 64<<20 })
	corpus := readCorpus(t)
	if !few {
		corpus = wholeCorpus(t) // most of these are large, and refused before they run
	}
	corpus = slices.DeleteFunc(corpus, (*specimen).timed)
	for _, s := range corpus {
		s.runs = 1
	}
	handovers := &handovers{}
	good := newNeighbour(t, b, handovers)
	ctx := suite.Context(t)

	rounds := 2
	if raced || testing.Short() { // the race detector's own memory grows, and is not measured
		rounds = 1
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() { stopped <- good.work(ctx, stop) }()
	invocations := rampage(ctx, t, b, handovers, corpus, random) // warms up
	warm := measure(b)
	for range rounds - 1 {
		invocations += rampage(ctx, t, b, handovers, corpus, random)
	}
	after := measure(b)
	close(stop)
	if err := <-stopped; err != nil {
		t.Errorf("the good tenant: %v", err)
	}

	t.Logf("%d modules, %d hostile invocations in %d rounds, beside %d good ones of %d units", len(corpus), invocations, rounds, good.results, good.first.Fuel)
	t.Logf("%d handovers of the good tenant, %d of the hostile one; %d times from it to the good one, after %d units at most", handovers.granted[tenantGood], handovers.granted[tenantHostile], handovers.switches, handovers.most)
	t.Logf("warm: %v; after: %v", warm, after)
	if limit := uint64(sliceUnits + callUnits); handovers.most > limit {
		t.Errorf("the good tenant waited for %d units, want at most %d", handovers.most, limit)
	}
	if handovers.switches < 100 || good.results < 10 {
		t.Errorf("%d results after %d switches: that shows nothing", good.results, handovers.switches)
	}
	// The good tenant and the filler go on meanwhile: they hold some memories.
	if after.heap > grown(warm.heap) || after.lent > warm.lent+8 {
		t.Errorf("memory grew: %v, then %v", warm, after)
	}
}

// grown is to what a measurement may have grown: by a tenth.
func grown(bytes uint64) uint64 { return bytes + bytes/10 }
