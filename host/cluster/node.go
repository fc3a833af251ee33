package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// Bounds of the node's waits.
const (
	// actTimeout bounds an operation on the table that is not a beat.
	actTimeout = 5 * time.Second
	// leaseWait is how long an answer from memory waits for a beat.
	leaseWait = 5 * time.Second
	// lookEvery is how often a node that has no entry reads the table.
	lookEvery = 250 * time.Millisecond
	// retryJoin is how long a node waits before it tries again to enter.
	retryJoin = time.Second
	// drainedWait is how long a drained node leaves sessions that nobody owns to others.
	drainedWait = 5 * time.Second
)

// Config configures a node. Table and Self are required.
type Config struct {
	Table Table
	Self  Self // Lease: default DefaultLease
	Log   *slog.Logger
	// Chance gives numbers from 0 to 1, by which beats of nodes drift apart. Default random.
	Chance func() float64
	// Now is the clock, which must be monotonic. Default time.Now.
	Now func() time.Time
}

// Term is the time in which the node owns the sessions, under one entry of the table.
type Term struct {
	Place
	lost   chan struct{}
	asked  chan struct{} // closed when the node is drained
	yields bool          // asked is closed; guarded by the node's mutex
	handed bool          // a caller of Node.Term has it; guarded by the node's mutex
}

// Lost is closed when the node no longer owns the sessions.
func (t *Term) Lost() <-chan struct{} { return t.lost }

// Drained is closed when the caller must give the sessions up in order, because the node is
// drained and another one can take them.
func (t *Term) Drained() <-chan struct{} { return t.asked }

// Stats are counts of a node's work.
type Stats struct {
	Beats, FailedBeats uint64
	Fenced             uint64 // nodes that this node closed
	Takeovers          uint64 // terms of this node
	Lost               uint64 // entries of this node that others closed
	WentBack           uint64 // times that the store had lost commits
	Age                time.Duration
	ClockOffset        time.Duration // of the time of the cluster from the machine's clock
}

// Node is this process among the nodes. Its methods may be called from any goroutine, but
// Run and Step from one at a time.
type Node struct {
	cfg   Config
	wake  chan struct{} // capacity 1: makes Run step
	clock clock

	mu       sync.Mutex // guards the fields below; no I/O under it
	phase    phase
	place    Place
	watch    *watch
	view     View
	lease    time.Time // until when the node may answer from memory
	taken    time.Time // when the newest take or release was known
	free     time.Time // since when nobody owns the sessions; zero: somebody does
	beating  bool
	answered bool // the newest beat was
	acting   bool
	nextBeat time.Time
	nextAct  time.Time
	silent   []Info        // nodes to close
	term     *Term         // nil: the node does not own the sessions
	serving  bool          // the host of term serves
	changed  chan struct{} // closed, and replaced, when anything below mu has changed
	tenures  map[uint64]tenure
	// differing are the epochs of nodes whose other settings are logged.
	differing map[uint64]bool
	stats     Stats
}

// tenure is the time in which a node is the owner.
type tenure struct {
	ctx context.Context
	end context.CancelFunc
}

type phase int

const (
	out     phase = iota // no entry; to be made
	inside               // an entry, which is open as far as is known
	held                 // no entry; one is made after Resign, when the term's host is closed
	leaving              // an entry; no term begins any more
	left                 // no entry, for good
)

// New makes a node that has no entry yet.
func New(cfg Config) *Node {
	if cfg.Self.Lease == 0 {
		cfg.Self.Lease = DefaultLease
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Chance == nil {
		cfg.Chance = rand.Float64
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Node{cfg: cfg, wake: make(chan struct{}, 1), clock: clock{now: cfg.Now}, changed: make(chan struct{}), differing: map[uint64]bool{}, tenures: map[uint64]tenure{}}
}

// Join enters the node for the first time. Its error says why this process cannot be a node.
func (n *Node) Join(ctx context.Context) error {
	place, err := n.cfg.Table.Join(ctx, n.cfg.Self)
	if err != nil {
		return fmt.Errorf("joining the cluster: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.joined(place)
	return nil
}

// joined begins with a new entry. mu is held.
func (n *Node) joined(place Place) {
	n.phase, n.place, n.watch = inside, place, newWatch(place.Epoch)
	n.lease, n.nextBeat, n.silent = time.Time{}, time.Time{}, nil
	n.cfg.Log.Info("this node is part of the cluster", "node", n.cfg.Self.Name, "epoch", place.Epoch)
	n.announce()
}

// announce wakes those who wait for a change. mu is held.
func (n *Node) announce() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// Op is an operation on the table. The caller performs it by Do on any goroutine, and then
// calls the function that Do returns, with the time, on the goroutine of Step.
type Op struct {
	Do func(ctx context.Context) (done func(now time.Time))
	// Timeout bounds Do.
	Timeout time.Duration
}

// Step decides what to do at a time: an operation, after which the caller steps again, or
// nothing until next. At most one beat and one other operation are in progress.
func (n *Node) Step(now time.Time) (op *Op, next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.beating && !now.Before(n.nextBeat) {
		n.beating = true
		if n.phase == inside || n.phase == leaving {
			return n.beatOp(now, n.place), now
		}
		return n.lookOp(), now
	}
	if !n.acting && !now.Before(n.nextAct) {
		if op := n.act(now); op != nil {
			n.acting = true
			return op, now
		}
	}
	next = n.nextBeat
	if n.beating {
		next = now.Add(time.Hour)
	}
	if !n.acting && n.nextAct.After(now) && n.nextAct.Before(next) {
		next = n.nextAct
	}
	return nil, next
}

func (n *Node) beatOp(sent time.Time, place Place) *Op {
	return &Op{Timeout: beatTimeout, Do: func(ctx context.Context) func(time.Time) {
		v, err := n.cfg.Table.Beat(ctx, place)
		return func(now time.Time) { n.beaten(place, sent, now, v, err) }
	}}
}

// lookOp reads the table for a node without an entry.
func (n *Node) lookOp() *Op {
	return &Op{Timeout: beatTimeout, Do: func(ctx context.Context) func(time.Time) {
		v, err := n.cfg.Table.Look(ctx)
		return func(now time.Time) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.beating, n.nextBeat = false, now.Add(lookEvery)
			if err != nil {
				n.cfg.Log.Debug("the table of nodes could not be read", "error", err)
				return
			}
			n.see(v)
		}
	}}
}

// beaten takes in the answer to a beat that was sent for an entry.
func (n *Node) beaten(place Place, sent, now time.Time, v View, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.beating = false
	n.nextBeat = now.Add(time.Duration(float64(beatEvery) * (0.9 + 0.2*n.cfg.Chance())))
	n.stats.Beats++
	if n.place != place || n.phase != inside && n.phase != leaving {
		return
	}
	switch {
	case errors.Is(err, host.ErrFenced):
		n.lose("another node has closed this node, which was silent")
		return
	case err != nil:
		n.stats.FailedBeats++
		n.watch.broken = true
		level := slog.LevelDebug
		if n.answered { // once for each time that it is away
			level = slog.LevelWarn
		}
		n.answered = false
		n.cfg.Log.Log(context.Background(), level, "the store did not answer a beat of this node", "error", err)
		return
	case v.Map < n.view.Map || v.Node(place.Epoch) == nil:
		n.stats.WentBack++
		n.cfg.Log.Error("store_went_back: the store has lost commits: this node starts anew from what is stored", "map", v.Map, "known", n.view.Map)
		n.view = v
		n.lose("the store has lost commits")
		return
	}
	n.answered = true
	n.clock.answered(sent, now, v.Node(place.Epoch).Beat)
	n.watch.answered(now, v)
	n.lease = sent.Add(leaseFor)
	var soon time.Duration
	n.silent, soon = n.watch.silent()
	if soon > 0 && now.Add(soon).Before(n.nextBeat) {
		n.nextBeat = now.Add(soon)
	}
	if sent.Before(n.taken) {
		n.announce() // the answer may be older
		return
	}
	n.see(v)
	n.cfg.Self.Drained = v.Node(place.Epoch).Drained
	switch owns := v.Owner == place.Epoch; {
	case n.term != nil && !owns:
		n.lose("another node owns the sessions")
	case n.term == nil && owns:
		n.own(now) // by a take whose outcome was unknown
	case owns && n.cfg.Self.Drained && !n.term.yields && n.others():
		n.term.yields = true
		close(n.term.asked)
	}
}

// others reports whether another live node can take the sessions, as far as is known. mu is
// held.
func (n *Node) others() bool {
	for i := range n.view.Nodes {
		if o := &n.view.Nodes[i]; o.Epoch != n.place.Epoch && o.State == Live && !o.Drained {
			return true
		}
	}
	return false
}

// see takes in a view. mu is held.
func (n *Node) see(v View) {
	n.view = v
	if !v.Free() {
		n.free = time.Time{}
	} else if n.free.IsZero() {
		n.free = n.cfg.Now()
	}
	for epoch := range n.tenures {
		if i := n.view.Node(epoch); n.view.Owner != epoch || i == nil || !i.Open() {
			n.forget(epoch)
		}
	}
	n.compare()
	n.announce()
}

// compare logs once which nodes have other settings than this node. mu is held.
func (n *Node) compare() {
	maps.DeleteFunc(n.differing, func(epoch uint64, _ bool) bool { return n.view.Node(epoch) == nil })
	for i := range n.view.Nodes {
		other := &n.view.Nodes[i]
		if !other.Open() || other.Epoch == n.place.Epoch || n.differing[other.Epoch] {
			continue
		}
		if names := n.cfg.Self.Differing(&other.Self); len(names) > 0 {
			n.differing[other.Epoch] = true
			n.cfg.Log.Warn("a node has other settings than this node: give all nodes the same", "node", other.Name, "settings", strings.Join(names, ", "))
		}
	}
}

// lose ends the entry, because somebody else closed it. mu is held.
func (n *Node) lose(why string) {
	n.stats.Lost++
	n.cfg.Log.Warn("this node is no longer part of the cluster", "epoch", n.place.Epoch, "reason", why)
	n.end()
}

// end ends the entry. mu is held.
func (n *Node) end() {
	n.lease, n.silent = time.Time{}, nil
	n.forget(n.place.Epoch)
	switch {
	case n.phase == leaving:
		n.phase = left
	case n.term != nil && n.term.handed:
		n.phase = held
	default:
		n.phase = out
	}
	if n.term != nil {
		close(n.term.lost)
		n.term, n.serving = nil, false
	}
	n.nextBeat, n.nextAct = time.Time{}, time.Time{}
	n.announce()
}

// act returns the operation that is due besides beats, or nil. mu is held.
func (n *Node) act(now time.Time) *Op {
	switch {
	case n.phase == out:
		return n.joinOp()
	case n.phase == leaving && n.term != nil && !n.term.handed:
		return n.releaseOp(n.term) // it was taken a moment before
	case n.phase != inside || !now.Before(n.lease):
		return nil
	case len(n.silent) > 0:
		return n.fenceOp(n.silent[0])
	case n.term == nil && n.view.Free() && (!n.cfg.Self.Drained || !n.others() || now.Sub(n.free) >= drainedWait):
		return n.takeOp()
	}
	return nil
}

// joinOp enters anew. mu is held.
func (n *Node) joinOp() *Op {
	self := n.cfg.Self
	return &Op{Timeout: actTimeout, Do: func(ctx context.Context) func(time.Time) {
		place, err := n.cfg.Table.Join(ctx, self)
		return func(now time.Time) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.acting = false
			if err != nil {
				n.cfg.Log.Warn("this node cannot join the cluster yet", "error", err)
				n.nextAct = now.Add(retryJoin)
				return
			}
			n.joined(place)
		}
	}}
}

func (n *Node) fenceOp(silent Info) *Op {
	place := n.place
	return &Op{Timeout: actTimeout, Do: func(ctx context.Context) func(time.Time) {
		fenced, err := n.cfg.Table.Fence(ctx, place, silent)
		return func(now time.Time) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.acting, n.silent = false, nil // the next beat lists them anew
			switch {
			case err != nil:
				n.cfg.Log.Warn("a silent node could not be closed yet", "node", silent.Name, "epoch", silent.Epoch, "error", err)
				n.nextAct = now.Add(beatEvery)
			case fenced:
				n.stats.Fenced++
				n.cfg.Log.Warn("a silent node is closed", "node", silent.Name, "epoch", silent.Epoch, "connected", silent.Connected)
				if i := n.view.Node(silent.Epoch); i != nil {
					i.State = Fenced
				}
				n.see(n.view)
			}
		}
	}}
}

func (n *Node) takeOp() *Op {
	place := n.place
	return &Op{Timeout: actTimeout, Do: func(ctx context.Context) func(time.Time) {
		taken, err := n.cfg.Table.Take(ctx, place)
		return func(now time.Time) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.acting = false
			if n.place != place || n.phase != inside && n.phase != leaving {
				return // the entry has been closed meanwhile
			}
			switch {
			case err != nil:
				n.cfg.Log.Warn("the sessions could not be taken yet", "error", err)
				n.nextAct, n.nextBeat = now.Add(beatEvery), now // the outcome may be unknown: a beat shows it
			case taken:
				n.own(now)
			default:
				n.nextBeat = now // another node was faster: see which
				n.nextAct = now.Add(beatEvery / 10)
			}
		}
	}}
}

// releaseOp gives up a term that has no host.
func (n *Node) releaseOp(t *Term) *Op {
	return &Op{Timeout: actTimeout, Do: func(ctx context.Context) func(time.Time) {
		err := n.cfg.Table.Release(ctx, t.Place)
		return func(now time.Time) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.acting = false
			if err != nil {
				n.nextAct = now.Add(beatEvery)
				return
			}
			n.released(t)
		}
	}}
}

// released ends a term that the node has given up. mu is held.
func (n *Node) released(t *Term) {
	if n.term == t {
		close(t.lost)
		n.term, n.serving = nil, false
		n.forget(t.Epoch)
		n.view.Owner = 0
		n.taken, n.nextBeat = n.cfg.Now(), time.Time{}
	}
	n.announce()
}

// own begins a term, unless the node has one: a beat may show that the node owns the sessions
// before the take is answered. mu is held.
func (n *Node) own(now time.Time) {
	n.taken = now
	if n.term != nil {
		return
	}
	n.view.Owner = n.place.Epoch
	n.stats.Takeovers++
	n.term, n.serving = &Term{Place: n.place, lost: make(chan struct{}), asked: make(chan struct{})}, false
	n.cfg.Self.Drained = false
	n.cfg.Log.Info("this node owns the sessions", "epoch", n.place.Epoch)
	n.see(n.view)
}

// Run beats, closes silent nodes and takes the sessions when nobody owns them, until ctx
// ends. It does not leave: see [Node.Leave].
func (n *Node) Run(ctx context.Context) {
	done := make(chan func(time.Time))
	var under int
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		op, next := n.Step(n.cfg.Now())
		if op != nil {
			under++
			go func() {
				within, cancel := context.WithTimeout(ctx, op.Timeout)
				defer cancel()
				done <- op.Do(within)
			}()
			continue
		}
		timer.Reset(next.Sub(n.cfg.Now()))
		select {
		case finish := <-done:
			under--
			finish(n.cfg.Now())
		case <-timer.C:
		case <-n.wake:
		case <-ctx.Done():
		}
	}
	for ; under > 0; under-- {
		<-done
	}
}

// Time returns the time of the cluster: that of the store, carried on by this node's own
// clock. It never goes back, and steps of the machine's clock do not change it.
func (n *Node) Time() time.Time { return n.clock.time() }

// Hurry makes the node read the table now: another node says that it has changed.
func (n *Node) Hurry() {
	n.mu.Lock()
	n.nextBeat = time.Time{}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Entry waits until the node has an entry with another epoch than the given one, and may be
// given the sessions.
func (n *Node) Entry(ctx context.Context, not uint64) (Place, error) {
	for {
		n.mu.Lock()
		place, there, changed := n.place, n.phase == inside && n.place.Epoch != not, n.changed
		n.mu.Unlock()
		if there {
			return place, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Place{}, ctx.Err()
		}
	}
}

// Term waits until the node owns the sessions. The caller opens a host for the term and calls
// [Node.Serve]. After it has closed the host it calls [Node.Release] or [Node.Resign].
func (n *Node) Term(ctx context.Context) (*Term, error) {
	for {
		n.mu.Lock()
		term, changed := n.term, n.changed
		if n.phase != inside {
			term = nil
		}
		if term != nil {
			term.handed = true
		}
		n.mu.Unlock()
		if term != nil {
			return term, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Serve says that the host of a term answers requests.
func (n *Node) Serve(t *Term) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term == t {
		n.serving = true
		n.announce()
	}
}

// Retire says that the host of a term no longer answers requests, although the node still
// owns the sessions.
func (n *Node) Retire(t *Term) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term == t {
		n.serving = false
		n.forget(t.Epoch)
		n.announce()
	}
}

// forget says that the owner has gone. mu is held.
func (n *Node) forget(epoch uint64) {
	if t, there := n.tenures[epoch]; there {
		t.end()
		delete(n.tenures, epoch)
	}
}

// Release gives the sessions of a term up, after its host was closed in order. A node that is
// leaving keeps its entry, so that it can hand requests to the next owner. It has no further
// term under this entry: a batch of its host that the store gets late would count as a batch
// of the next host.
func (n *Node) Release(ctx context.Context, t *Term) error {
	n.mu.Lock()
	leaves := n.phase == leaving
	n.mu.Unlock()
	if !leaves {
		return n.Resign(ctx, t, 0)
	}
	err := n.cfg.Table.Release(ctx, t.Place)
	if err != nil {
		return errors.Join(err, n.Resign(ctx, t, 0))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.released(t)
	n.kick()
	return nil
}

// Resign closes the entry of a term whose host is closed, but perhaps not in order, so that
// any node may take the sessions. The node enters anew after the given time, unless it is
// leaving.
func (n *Node) Resign(ctx context.Context, t *Term, after time.Duration) error {
	err := n.cfg.Table.Leave(ctx, t.Place)
	if errors.Is(err, host.ErrFenced) {
		err = nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term == t {
		n.end()
	}
	if n.phase == held {
		n.phase = out
		n.nextAct = n.cfg.Now().Add(after)
	}
	n.announce()
	n.kick()
	return err
}

// kick makes Run step. It needs no lock.
func (n *Node) kick() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Leaving says that the node is about to leave: it takes the sessions no more. What it owns
// it keeps until Leave.
func (n *Node) Leaving(ctx context.Context) error {
	n.mu.Lock()
	place, was := n.place, n.phase
	switch n.phase {
	case inside:
		n.phase = leaving
	case out, held:
		n.phase = left
	}
	n.announce()
	n.mu.Unlock()
	if was != inside {
		return nil
	}
	return n.cfg.Table.Leaving(ctx, place)
}

// Drain makes the live node of a name drained, or no longer drained. A drained node gives the
// sessions up in order, and takes them again only if no other live node can; it is then no
// longer drained.
func (n *Node) Drain(ctx context.Context, name string, drained bool) error {
	n.mu.Lock()
	place := n.place
	n.mu.Unlock()
	err := n.cfg.Table.Drain(ctx, place, name, drained)
	n.Hurry()
	return err
}

// Leave closes the node's entry for good. Its host must be closed. The node still reads the
// table, so that it can hand requests to others, until the context of Run ends.
func (n *Node) Leave(ctx context.Context) error {
	n.mu.Lock()
	place, was := n.place, n.phase
	n.mu.Unlock()
	var err error
	if was == inside || was == leaving {
		if err = n.cfg.Table.Leave(ctx, place); errors.Is(err, host.ErrFenced) {
			err = nil
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.place == place && (n.phase == inside || n.phase == leaving) {
		n.phase = leaving
		n.end()
	}
	n.kick()
	return err
}

// errNoLease is why a node does not answer from memory.
var errNoLease = &host.Error{
	Code:       host.CodeUnavailable,
	Message:    "This node cannot reach the store, and does not answer from memory",
	RetryAfter: time.Second,
}

// Lease waits until the node may answer from memory as the owner, at most for five seconds.
func (n *Node) Lease(ctx context.Context) error {
	var timeout <-chan time.Time
	for {
		n.mu.Lock()
		now := n.cfg.Now()
		owns, ok, changed := n.term != nil, now.Before(n.lease), n.changed
		n.mu.Unlock()
		if owns && ok {
			return nil
		}
		if !owns {
			return errNoLease
		}
		if timeout == nil {
			timer := time.NewTimer(leaseWait)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-changed:
		case <-timeout:
			return errNoLease
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Find waits for a node to send requests to: the owner, if its epoch is not the given one,
// which the caller has found to be gone. 0: any owner.
func (n *Node) Find(ctx context.Context, not uint64) (Target, error) {
	for {
		n.mu.Lock()
		target, found := n.target(not)
		changed := n.changed
		n.mu.Unlock()
		if found {
			return target, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Target{}, ctx.Err()
		}
	}
}

// target returns the owner. mu is held.
func (n *Node) target(not uint64) (t Target, found bool) {
	owner := n.view.Node(n.view.Owner)
	if owner == nil || !owner.Open() || owner.Epoch == not {
		return t, false
	}
	here := n.term != nil && n.term.Epoch == owner.Epoch
	if here && !n.serving || owner.Epoch == n.place.Epoch && !here {
		return t, false
	}
	current, there := n.tenures[owner.Epoch]
	if !there {
		current.ctx, current.end = context.WithCancel(context.Background())
		n.tenures[owner.Epoch] = current
	}
	return Target{Info: *owner, Here: here, Tenure: current.ctx}, true
}

// Known reports whether a key is that of an open entry.
func (n *Node) Known(key []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.view.Nodes {
		if node := &n.view.Nodes[i]; node.Open() && string(node.Key) == string(key) {
			return true
		}
	}
	return false
}

// View returns the table as the node has last read it.
func (n *Node) View() View {
	n.mu.Lock()
	defer n.mu.Unlock()
	v := n.view
	v.Nodes = append([]Info(nil), v.Nodes...)
	return v
}

// Ready says why the node cannot serve at the moment, or nil.
func (n *Node) Ready() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, found := n.target(0)
	switch {
	case n.phase != inside:
		return errors.New("the node is joining or leaving the cluster")
	case !n.cfg.Now().Before(n.lease):
		return errors.New("the node cannot reach the store")
	case !found:
		return errors.New("no node owns the sessions at the moment")
	}
	return nil
}

// Stats returns counts. Age is how long ago the newest beat was answered.
func (n *Node) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.ClockOffset = n.clock.away()
	if n.watch != nil && !n.watch.newest.IsZero() {
		s.Age = n.cfg.Now().Sub(n.watch.newest)
	}
	return s
}
