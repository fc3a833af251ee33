package scheduler

import "github.com/weftrun/weft/host"

// The code of a module is dropped from memory when others need the room, and may take
// longer to load or build again than any run. An attempt whose module has none gives
// its token back at once and waits without a core: it comes back to the queue, at the
// age of its run, when the code is there. However many attempts wait for a module, it
// is prepared once, and the work is on the tenant's clock.
//
//	run: code in memory?  begin the guest  :  give the token back, wait in coming
//	prepared, or not: all that wait in coming are ready again

// mostCodeWaits is how often in a row an attempt waits for its module's code. After
// that it keeps its token: the code was dropped again each time, or cannot be built,
// which the sandbox then reports.
const mostCodeWaits = 3

// codeReady reports whether an attempt that has a token can begin its guest. If not,
// the token is given back.
func (c *cores) codeReady(at *attempt) bool {
	// It keeps its token: the sandbox reports what is wrong with the code.
	if at.waits >= mostCodeWaits {
		at.waits = 0
		return true
	}
	inv, err := at.code()
	if err != nil || c.s.cfg.Sandbox.Ready(&inv) { // the sandbox returns the error again when the guest begins
		at.waits = 0
		return true
	}
	at.waits++
	key := codeKey{inv.Digest, inv.Limits.TableEntries}
	c.s.mu.Lock()
	c.queue.GiveBack(inv.Tenant)
	at.service.Wants(c.s.now())
	c.s.counters.CodeWaits++
	c.s.suspicion.trials.Prepares(at.suspectKey())
	first := len(c.coming[key]) == 0
	c.coming[key] = append(c.coming[key], at)
	c.s.mu.Unlock()
	// The first attempt that needs the code has it prepared for all.
	if first {
		c.s.workers.Do(func() { c.prepare(key, &inv) })
	}
	c.s.signal()
	return false
}

// code names the code that the attempt needs.
func (at *attempt) code() (host.Invocation, error) {
	m, err := at.ss.s.cfg.Modules.ByDigest(at.view.Version)
	if err != nil {
		return host.Invocation{}, err
	}
	return m.Code(at.ss.key.Tenant, at.view.Step, at.answers.Open().Limits)
}

// prepare has code prepared, and wakes those who wait for it.
func (c *cores) prepare(key codeKey, inv *host.Invocation) {
	// An error shows again where the guest begins, for each attempt.
	work, err := c.s.cfg.Sandbox.Prepare(c.s.base, inv)
	if err != nil {
		c.s.cfg.Log.Warn("the code of a module cannot be prepared", "module", key.digest, "error", err)
	}
	c.s.mu.Lock()
	list := c.coming[key]
	delete(c.coming, key)
	c.queue.Owe(inv.Tenant, work)
	c.s.mu.Unlock()
	for _, at := range list {
		at.ss.mu.Lock()
		c.ready(at)
		at.ss.mu.Unlock()
	}
}
