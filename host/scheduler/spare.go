package scheduler

import "time"

// Two deaths of class memory within memoryWindow make the server run half as many
// guests at a time, and keep half as many instances for them, for as long.
const memoryWindow = 10 * time.Minute

// spare is how many tokens are kept back, and until when; a zero time: none are.
// Scheduler.mu guards it.
type spare struct {
	s      *Scheduler
	tokens int
	until  time.Time
}

// begin runs half as many guests at a time, one at least, and keeps half as many
// instances, if the system has ended the process twice in a short time for its memory.
func (p *spare) begin(deaths [2]int64) {
	s := p.s
	until := time.Unix(0, deaths[0]).Add(memoryWindow)
	if deaths[1] == 0 || time.Duration(deaths[0]-deaths[1]) > memoryWindow || !until.After(s.cfg.Now()) {
		return
	}
	p.tokens = s.cores.queue.Size() / 2
	s.cores.queue.Resize(-p.tokens)
	p.until = until
	s.cfg.Spare(true)
	s.cfg.Log.Warn("the system has ended the server twice for its memory: fewer steps run at a time, and fewer instances are kept", "at_a_time", s.cores.queue.Size(), "until", until)
}

// end gives back what begin took, and says when to look again. The caller
// holds mu.
func (p *spare) end(now time.Time) (work []func(), next time.Time) {
	s := p.s
	if p.until.IsZero() || now.Before(p.until) {
		return nil, p.until
	}
	s.cores.queue.Resize(p.tokens)
	*p = spare{s: s}
	s.cfg.Spare(false)
	s.cfg.Log.Info("as many steps run at a time as before, and as many instances are kept")
	return nil, time.Time{}
}
