package stream

// Resync makes every subscription read the store again, as a subscription that is too far
// behind does. That may happen at any moment.
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
