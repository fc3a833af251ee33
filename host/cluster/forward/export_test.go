package forward

// Kept returns how many bytes of bodies count as kept.
func (f *Forwarder) Kept() int64 { return f.kept.Load() }
