package cluster

// BeatTimeout is how long a beat waits for its answer.
const BeatTimeout = beatTimeout

// Inside reports whether the node has an entry and is not leaving.
func (n *Node) Inside() bool { return n.phase == inside }

// Epoch returns the number of the node's entry.
func (n *Node) Epoch() uint64 { return n.place.Epoch }

// Owned returns the node's term, or nil, without a wait. handed: the caller opens a host.
func (n *Node) Owned(handed bool) *Term {
	if n.term != nil && handed {
		n.term.handed = true
	}
	return n.term
}
