package cluster

import "time"

// watch holds what a node knows of the others, and decides who is silent. It has no clock
// and does no I/O.
//
// Its time is what passes between its own answered beats, of each gap at most maxGap. So
// after a restart of the store, during which all were silent alike, nobody counts as silent,
// and neither does anybody for a node that was paused itself.
type watch struct {
	self    uint64
	own     time.Duration // passed, by the node's own time
	newest  time.Time     // when the newest beat was answered; zero: none was
	stands  time.Duration // own when the connection of the beats was made
	broken  bool          // the connection broke after the newest answered beat
	sighted map[uint64]sighting
	view    View
}

// sighting is when the counts of a node last grew.
type sighting struct {
	beats, batch uint64
	at           time.Duration
}

// maxGap is how much of the time between two answered beats counts.
const maxGap = time.Second

func newWatch(self uint64) *watch {
	return &watch{self: self, broken: true, sighted: map[uint64]sighting{}}
}

// answered takes in the answer to a beat.
func (w *watch) answered(now time.Time, v View) {
	if !w.newest.IsZero() {
		w.own += min(now.Sub(w.newest), maxGap)
	}
	w.newest = now
	if w.broken {
		w.stands, w.broken = w.own, false
	}
	known := w.sighted
	w.sighted = make(map[uint64]sighting, len(v.Nodes))
	for i := range v.Nodes {
		n := &v.Nodes[i]
		s, seen := known[n.Epoch]
		if !seen || s.beats != n.Beats || s.batch != n.Batch {
			s = sighting{n.Beats, n.Batch, w.own}
		}
		w.sighted[n.Epoch] = s
	}
	w.view = v
}

// silent returns the nodes to close, and how soon to look again because of a node whose
// connection is gone; 0: there is none.
func (w *watch) silent() (list []Info, soon time.Duration) {
	for i := range w.view.Nodes {
		n := &w.view.Nodes[i]
		if n.Epoch == w.self || !n.Open() {
			continue
		}
		quiet := w.own - w.sighted[n.Epoch].at
		switch {
		case quiet >= n.Lease:
			list = append(list, *n)
		case n.Connected || w.own-w.stands < n.Lease:
			// After a restart of the store the connections of all are gone.
		case quiet >= silentFor:
			list = append(list, *n)
		case soon == 0 || silentFor-quiet < soon:
			soon = silentFor - quiet
		}
	}
	return list, soon
}
