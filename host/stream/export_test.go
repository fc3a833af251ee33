package stream

// Resync makes every subscription look into the store again, as one does that is
// too far behind: at any moment it may have to.
func (h *Hub) Resync() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, topic := range h.topics {
		for s := range topic {
			s.mu.Lock()
			s.drop()
			s.signal()
			s.mu.Unlock()
		}
	}
}

// Subscribers is the number of open subscriptions.
func (h *Hub) Subscribers() int { return int(h.count.Load()) }
