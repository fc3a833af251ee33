package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/cluster/clustertest"
)

// seeds is how many clusters a test simulates, unless WEFT_SEEDS says how many.
const seeds = 300

// The simulation: several nodes, each with a host that has one value in memory, on one table
// in a model of the store. All is stepped by one goroutine, with a clock of its own, and by
// random numbers of a seed: nodes pause, die, are cut off, join and leave; answers are late
// or lost; the store restarts. A host writes versions of the value, and reads it from memory
// under its lease.

// fault is a deliberate mistake of the model, which the simulation must find.
type fault int

const (
	noFault    fault = iota
	noFence          // a commit neither looks at the entry nor locks it
	noOwner          // a commit does not look who the owner is
	earlyLease       // a host looks at its lease before it reads its memory
	ownClock         // a host takes the time from its machine
)

// commit is a transaction of a host.
type commit struct {
	*clustertest.Commit
	base int // the version that it builds on
}

// process is a node of the simulation.
type process struct {
	table  *clustertest.Members
	node   *cluster.Node
	name   string
	skew   time.Duration // of its machine's clock from the store's
	drift  float64       // of its machine's clock, each second
	began  time.Time
	paused time.Time // until when
	dead   bool
	leaves bool
	later  []later

	term   *cluster.Term // of the host; nil: there is none
	memory int           // version in the host's memory
	write  *commit
	sent   *commit // a commit that the connection carries although the host is gone
	queued *queued // a batch that the store has not got yet, of a host that is gone
	read   *reading
}

// own returns the time by the clock of the process's machine.
func (p *process) own(now time.Time) time.Time {
	return now.Add(p.skew + time.Duration(float64(now.Sub(p.began))*p.drift))
}

type queued struct {
	place cluster.Place
	base  int
}

// later is what happens to a process at a time.
type later struct {
	at time.Time
	do func(now time.Time)
}

// reading is an answer from memory that is not given yet.
type reading struct {
	asked int // newest version of which a client knew when it asked
	value int // -1: not read yet
	lease bool
}

type world struct {
	store     *clustertest.Memory
	fault     fault
	now       time.Time
	version   int // of the value
	acked     int // newest version of which a client knows
	rnd       *rand.Rand
	processes []*process
	lost      error
	calm      bool // there are no more faults
	made      int
}

// simulate runs one cluster, and returns what was wrong.
func simulate(seed uint64, f fault) error {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1))}
	w.store, w.fault, w.now = clustertest.NewMemory(), f, time.Unix(1e9, 0)
	w.store.NoFence, w.store.NoOwner = f == noFence, f == noOwner
	w.store.Now = func() time.Time { return w.now }
	for range 2 + w.rnd.IntN(3) {
		w.join()
	}
	const tick = 20 * time.Millisecond
	const calm, end = 60 * time.Second, 90 * time.Second // faults until calm
	began := w.now
	for ; w.now.Sub(began) < end && w.lost == nil; w.now = w.now.Add(tick) {
		if w.now.Sub(began) < calm {
			w.disturb()
		} else {
			w.calm, w.store.Away = true, false
		}
		for _, p := range w.processes {
			if w.now.Sub(began) >= calm {
				p.table.Cut, p.paused = false, time.Time{}
			}
			if !p.dead && !w.now.Before(p.paused) {
				w.step(p)
			}
			w.carry(p)
		}
	}
	if w.lost == nil && !w.serves() {
		return errors.New("no node serves after the faults")
	}
	return w.lost
}

// serves reports whether a living node serves.
func (w *world) serves() bool {
	for _, p := range w.processes {
		if !p.dead && p.term != nil && p.node.Lease(canceled) == nil {
			return true
		}
	}
	return false
}

// canceled lets Lease answer at once.
var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (w *world) chance(one int) bool { return w.rnd.IntN(one) == 0 }

// Clocks of machines: wrong by at most clockSkew, and by at most clockRate of what passes.
// The time of the cluster may be wrong by half of what a beat takes.
const (
	clockSkew = 10 * time.Minute
	clockRate = 1e-4
	clockOff  = cluster.BeatTimeout/2 + 100*time.Millisecond
)

func (w *world) join() {
	w.made++
	p := &process{table: w.store.Members(), began: w.now}
	p.skew = time.Duration(w.rnd.Int64N(int64(2*clockSkew))) - clockSkew
	p.drift = (2*w.rnd.Float64() - 1) * clockRate
	p.name = fmt.Sprint("n", w.made)
	p.node = cluster.New(cluster.Config{Table: p.table, Self: cluster.Self{Name: p.name, Lease: 2 * time.Second}, Chance: w.rnd.Float64, Now: func() time.Time { return p.own(w.now) }})
	w.processes = append(w.processes, p)
}

// disturb brings faults about.
func (w *world) disturb() {
	p := w.processes[w.rnd.IntN(len(w.processes))]
	living := 0
	for _, q := range w.processes {
		if !q.dead && !q.leaves {
			living++
		}
	}
	switch w.rnd.IntN(2000) {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		most := 3 * time.Second
		if w.chance(4) {
			most = time.Minute
		}
		p.paused = w.now.Add(time.Duration(w.rnd.Int64N(int64(most))))
	case 8, 9:
		if living > 1 {
			w.kill(p)
		}
	case 10, 11:
		p.table.Cut = !p.table.Cut
	case 12:
		if len(w.processes) < 10 {
			w.join()
		}
	case 13, 14:
		if living > 1 {
			p.leaves = true
		}
	case 17, 18, 19: // an operator drains a node, or takes that back
		_ = p.node.Drain(context.Background(), w.processes[w.rnd.IntN(len(w.processes))].name, w.chance(2))
	case 15, 16: // the store restarts: all transactions and connections end
		w.store.Away = !w.store.Away
		w.store.Restart()
	}
}

func (w *world) kill(p *process) {
	p.dead = true
	if w.chance(3) {
		return // by power loss: the store does not notice the end of the connections
	}
	w.store.Disconnect(p.node.Epoch(), w.chance(2))
}

// carry delivers what a connection has taken over from a host, which may be gone.
func (w *world) carry(p *process) {
	if p.sent != nil && !w.store.Away && w.chance(5) {
		_ = w.finish(w.end(p.sent))
		p.sent = nil
	}
	if p.queued != nil && !w.store.Away && w.chance(20) {
		if c, err := w.begin(p.queued.place, p.queued.base); err == nil {
			_ = w.finish(w.end(c))
		}
		p.queued = nil
	}
}

// begin begins a commit.
func (w *world) begin(p cluster.Place, base int) (*commit, error) {
	c, err := w.store.Begin(p)
	return &commit{c, base}, err
}

// end commits.
func (w *world) end(c *commit) error {
	if err := c.End(); err != nil {
		return err
	}
	if c.base != w.version {
		return fmt.Errorf("double owner: a node writes version %d, and the store has %d", c.base+1, w.version)
	}
	w.version++
	return nil
}

// finish takes note of a broken promise.
func (w *world) finish(err error) error {
	if err != nil && !errors.Is(err, host.ErrFenced) && w.lost == nil {
		w.lost = err
	}
	return err
}

// step runs a process for a moment.
func (w *world) step(p *process) {
	list := p.later
	p.later = nil
	for _, l := range list {
		if l.at.After(w.now) {
			p.later = append(p.later, l)
		} else {
			l.do(w.now)
		}
	}
	for {
		op, _ := p.node.Step(p.own(w.now))
		if op == nil {
			break
		}
		w.perform(p, op)
	}
	if p.leaves && p.node.Inside() {
		_ = p.node.Leaving(context.Background())
	}
	w.host(p)
}

// perform performs an operation: soon, late, or with an answer that is lost.
func (w *world) perform(p *process, op *cluster.Op) {
	there := time.Duration(w.rnd.IntN(30)) * time.Millisecond
	back := time.Duration(w.rnd.IntN(30)) * time.Millisecond
	if !w.calm && w.chance(20) {
		there += time.Duration(w.rnd.Int64N(int64(op.Timeout)))
	}
	broken := !w.calm && w.chance(40)
	p.later = append(p.later, later{w.now.Add(there), func(now time.Time) {
		done := op.Do(context.Background())
		if broken || there+back > op.Timeout {
			// The effect is there, and the answer is not.
			cut := p.table.Cut
			p.table.Cut = true
			done = op.Do(context.Background())
			p.table.Cut = cut
			back = op.Timeout
		}
		p.later = append(p.later, later{now.Add(back), func(now time.Time) { done(p.own(now)) }})
	}})
}

// host runs the host of a process for a moment.
func (w *world) host(p *process) {
	term := p.node.Owned(false)
	if p.term != nil {
		select {
		case <-p.term.Lost():
			w.drop(p, false)
		default:
			if (p.leaves || isDrained(p.term)) && p.write == nil && w.chance(5) {
				w.drop(p, true)
			}
		}
	}
	if p.term == nil && term != nil && !p.leaves && p.table.Reaches() && w.chance(3) {
		p.term, p.memory = p.node.Owned(true), w.version
		p.node.Serve(term)
	}
	if p.term == nil {
		return
	}
	w.commit(p)
	if p.term != nil {
		w.answer(p)
	}
}

// isDrained reports whether the sessions of a term must be given up.
func isDrained(t *cluster.Term) bool {
	select {
	case <-t.Drained():
		return true
	default:
		return false
	}
}

// drop closes a host.
func (w *world) drop(p *process, clean bool) {
	p.node.Retire(p.term)
	if clean {
		_ = p.node.Release(context.Background(), p.term)
	} else {
		_ = p.node.Resign(context.Background(), p.term, 0)
	}
	p.term, p.write, p.read = nil, nil, nil
}

// commit writes a version.
func (w *world) commit(p *process) {
	switch {
	case p.write != nil && w.chance(4):
		if !p.table.Reaches() {
			return
		}
		if w.finish(w.end(p.write)) != nil {
			w.drop(p, false)
			return
		}
		at := p.node.Time()
		if w.fault == ownClock {
			at = p.own(w.now)
		}
		if off := at.Sub(w.now); off.Abs() > clockOff && w.lost == nil {
			w.lost = fmt.Errorf("the time of a run is %s off", off)
		}
		p.memory++
		w.acked = max(w.acked, p.memory)
		p.write = nil
	case p.write != nil && !w.calm && w.chance(60):
		// The connection breaks. What it has carried may arrive, and the host does not know.
		p.sent, p.write = p.write, nil
		w.drop(p, false)
	case p.write == nil && w.chance(4) && p.table.Reaches():
		if !w.calm && w.chance(30) {
			// The store gets the batch late, and the host is closed in order meanwhile.
			p.queued = &queued{p.term.Place, p.memory}
			w.drop(p, true)
			return
		}
		c, err := w.begin(p.term.Place, p.memory)
		if err != nil {
			w.drop(p, false)
			return
		}
		p.write = c
	}
}

// answer answers from memory.
func (w *world) answer(p *process) {
	if p.read == nil {
		p.read = &reading{asked: w.acked, value: -1}
		if w.fault == earlyLease {
			p.read.lease = p.node.Lease(canceled) == nil
		} else {
			p.read.value = p.memory
		}
		return
	}
	r := p.read
	if w.fault == earlyLease {
		// The client asks while the lease is looked at, and the memory is read later.
		r.value = p.memory
	} else {
		r.lease = p.node.Lease(canceled) == nil
	}
	p.read = nil
	asked := r.asked
	if w.fault == earlyLease {
		asked = w.acked
	}
	if r.lease && r.value < asked && w.lost == nil {
		w.lost = fmt.Errorf("an answer from memory has version %d, and a client knew %d before it asked", r.value, asked)
	}
}

// A cluster never has two owners, never answers from an old memory, and always has an owner
// again when faults cease.
func TestSimulation(t *testing.T) {
	count, err := strconv.ParseUint(os.Getenv("WEFT_SEEDS"), 10, 64)
	if err != nil {
		count = seeds
	}
	for seed := range count {
		if err := simulate(seed, noFault); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// The simulation finds mistakes.
func TestSimulationFindsFaults(t *testing.T) {
	for f, tt := range map[fault]struct{ name, want string }{
		noFence: {"no fence", "double owner"}, noOwner: {"no check of the owner", "double owner"}, ownClock: {"time of the machine", "the time of a run"}, earlyLease: {"lease before the read", "from memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(10_000) {
				if err := simulate(seed, f); err != nil {
					if !strings.Contains(err.Error(), tt.want) {
						t.Fatalf("seed %d: %v, want %s", seed, err, tt.want)
					}
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// A beat may show that a node owns the sessions before the take is answered. The node then
// has one term: under a second one, a host would begin beside commits of the first.
func TestTakeThatABeatShows(t *testing.T) {
	now := time.Unix(1e9, 0)
	m := clustertest.NewMemory()
	m.Now = func() time.Time { return now }
	table := m.Members()
	n := cluster.New(cluster.Config{Table: table, Self: cluster.Self{Name: "a"}, Chance: func() float64 { return 0 }, Now: func() time.Time { return now }})
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	owner := func() uint64 {
		v, err := table.Look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v.Owner
	}
	var taken func(time.Time)
	for range 100 {
		now = now.Add(50 * time.Millisecond)
		op, _ := n.Step(now)
		if op == nil {
			continue
		}
		before := owner()
		answer := op.Do(t.Context())
		if before == 0 && owner() != 0 {
			taken = answer // on its way
			continue
		}
		answer(now)
		if taken != nil && n.Owned(false) != nil {
			break
		}
	}
	first := n.Owned(false)
	if taken == nil || first == nil {
		t.Fatal("no beat has shown the take")
	}
	taken(now)
	if n.Owned(false) != first {
		t.Error("the answer to the take begins a second term")
	}
}

// A drained owner gives the sessions up to another node, and does not take them while there
// is one that can. When there is none, it takes them, and is drained no longer.
func TestDrain(t *testing.T) {
	w := &world{rnd: rand.New(rand.NewPCG(1, 1)), calm: true}
	w.store, w.now = clustertest.NewMemory(), time.Unix(1e9, 0)
	w.store.Now = func() time.Time { return w.now }
	until := func(what string, holds func() bool) {
		t.Helper()
		for end := w.now.Add(time.Minute); !holds(); w.now = w.now.Add(20 * time.Millisecond) {
			for _, p := range w.processes {
				if !p.dead {
					w.step(p)
				}
			}
			if w.lost != nil || w.now.After(end) {
				t.Fatalf("%s: not within a minute: %v", what, w.lost)
			}
		}
	}
	serves := func(p *process) func() bool { return func() bool { return p.term != nil && p.node.Ready() == nil } }
	w.join()
	a := w.processes[0]
	drained := func() bool {
		v := a.node.View()
		i := v.Node(a.node.Epoch())
		return i != nil && i.Drained
	}
	until("a serves", serves(a))
	if err := a.node.Drain(t.Context(), "n1", true); host.CodeOf(err) != host.CodeFailedPrecondition {
		t.Errorf("the only node is drained: %v", err)
	}
	w.join()
	w.join()
	b, c := w.processes[1], w.processes[2]
	until("all have joined", func() bool { return len(a.node.View().Nodes) == 3 })
	if err := c.node.Drain(t.Context(), "n1", true); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		until("another node serves", func() bool { return a.term == nil && (serves(b)() || serves(c)()) })
		next := b
		if !serves(b)() {
			next = c
		}
		until("the drained node is there again", func() bool { return a.node.Inside() && drained() })
		w.kill(next)
		next.term = nil
	}
	until("the drained node serves", serves(a))
	until("the node is no longer drained", func() bool { return !drained() })
}
