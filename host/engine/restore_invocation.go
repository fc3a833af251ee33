package engine

// invocation restores an invocation. Invocations are restored oldest first.
func (l *runLoader) invocation(saved *savedInvocation) error {
	s, r := l.s, l.r
	st, err := l.step(saved.Step)
	if err != nil {
		return err
	}
	in := l.scope(saved.In)
	switch {
	case saved.ID <= l.last || saved.ID > s.lastInvocation || s.invocations[saved.ID] != nil:
		return badSnapshot("invocation %d is out of order, or was never given", saved.ID)
	case in == nil:
		return badSnapshot("invocation %d is in collection %d, which is not open", saved.ID, saved.In)
	case saved.Phase > phaseSuspended || saved.Attempt == 0 || !saved.Began && saved.Phase != phaseQueued:
		return badSnapshot("invocation %d is not in a valid phase", saved.ID)
	case st.mode == modeOne && len(saved.Trigger) != 1, st.mode == modeJoin && len(saved.Trigger) != len(st.decl.Accepts):
		return badSnapshot("the trigger of invocation %d does not fit step %s", saved.ID, st.name)
	case saved.Halfway && saved.Phase != phaseQueued:
		return badSnapshot("invocation %d continues, but does not wait for a worker", saved.ID)
	case saved.Suspensions < 0:
		return badSnapshot("invocation %d was suspended %d times", saved.ID, saved.Suspensions)
	}
	l.last = saved.ID
	inv := &invocation{
		id: saved.ID, run: r, step: st, trigger: saved.Trigger, in: in, attempt: saved.Attempt, lastErr: saved.LastError,
		began: saved.Began, start: saved.Start, phase: saved.Phase, worker: saved.Worker, seat: saved.Seat,
		suspensions: saved.Suspensions, slept: saved.Slept, since: saved.Since, halfway: saved.Halfway, calls: collectCalls{fresh: saved.Fresh},
	}
	if inv.lineage, err = l.lineage(saved.Lineage); err != nil {
		return err
	}
	if err := inv.restoreCalls(saved.Calls); err != nil {
		return err
	}
	l.enter(inv)
	if err := l.worker(inv); err != nil {
		return err
	}
	if err := l.waiters(inv, saved.Waiters); err != nil {
		return err
	}
	if err := l.children(inv, saved.Children); err != nil {
		return err
	}
	if err := l.asked(inv, saved); err != nil {
		return err
	}
	kind := timerAttempt
	if inv.phase == phaseWaiting {
		kind = timerRetry
	}
	if inv.timer, err = l.timer(saved.Timer, kind, r, inv); err != nil {
		return err
	}
	// Each state must have what ends it, or the invocation would stand still for ever.
	if inv.phase == phaseWaiting && inv.timer == nil || (inv.phase == phaseSuspended) != (saved.Suspension != nil) {
		return badSnapshot("invocation %d waits for nothing", inv.id)
	}
	if saved.Suspension == nil {
		return nil
	}
	return l.suspend(inv, saved.Suspension)
}

// enter adds the invocation to the session, its run and its collection.
func (l *runLoader) enter(inv *invocation) {
	r := l.r
	l.s.invocations[inv.id] = inv
	inv.in.alive++
	r.alive++
	if inv.older = r.newest; r.newest == nil {
		r.oldest = inv
	} else {
		r.newest.newer = inv
	}
	r.newest = inv
}

// worker gives a running attempt the slot that it held.
func (l *runLoader) worker(inv *invocation) error {
	if inv.phase != phaseRunning {
		return nil
	}
	p := &l.r.pools[inv.step.index]
	// Two attempts with one worker number would free it twice.
	if inv.worker < 0 || inv.worker >= inv.step.workers || inv.worker/64 >= len(p.taken) || p.taken[inv.worker/64]&(1<<(inv.worker%64)) != 0 {
		return badSnapshot("invocation %d holds worker %d of step %s, as another does", inv.id, inv.worker, inv.step.name)
	}
	// Seats give the order in which attempts start, so they must differ.
	if l.seats[inv.seat] != nil || inv.seat > l.saved.LastSeat {
		return badSnapshot("invocation %d holds seat %d, as another does", inv.id, inv.seat)
	}
	l.seats[inv.seat] = inv
	p.taken[inv.worker/64] |= 1 << (inv.worker % 64)
	p.busy++
	l.r.seated++
	// An attempt of a blocked run keeps its slot but is not open.
	if l.r.rec.Blocked == nil {
		l.s.seats++
	}
	return nil
}

func (inv *invocation) restoreCalls(saved []savedCall) error {
	if len(saved) == 0 {
		return nil
	}
	inv.calls.made = make(map[collectKey]*collectCall, len(saved))
	for _, from := range saved {
		key := collectKey{buffer: from.Buffer, given: from.Given, fresh: from.Fresh}
		if inv.calls.made[key] != nil {
			return badSnapshot("invocation %d has collected by %q twice", inv.id, clip(from.Buffer))
		}
		call := &collectCall{}
		for _, set := range from.Sets {
			call.sets = append(call.sets, releasedSet{expected: set.Expected, events: set.Events})
		}
		inv.calls.made[key] = call
	}
	return nil
}

func (l *runLoader) waiters(inv *invocation, saved []savedWaiter) error {
	for _, from := range saved {
		// The wait must be one that the step could have begun: its type decides the
		// lists.
		if inv.waiters[from.ID] != nil || !inv.step.waits[from.Type] || from.Seq > l.s.lastWait {
			return badSnapshot("invocation %d does not wait for %s", inv.id, clip(from.Type))
		}
		if inv.waiters == nil {
			inv.waiters = make(map[string]*waiter)
		}
		inv.waiters[from.ID] = &waiter{
			id: from.ID, inv: inv, step: inv.step, typ: from.Type, broadcast: from.Broadcast, seq: from.Seq, since: from.Since,
			asked: from.Asked, answer: from.Answer, late: from.Late, need: from.Need,
		}
	}
	return nil
}

func (l *runLoader) children(inv *invocation, saved []savedChild) error {
	s := l.s
	for _, from := range saved {
		c := &child{
			key: from.Key, inv: inv, workflow: from.Workflow, run: from.Run, handler: from.Handler, session: from.Session, begun: from.Begun,
			stream: from.Stream, seen: from.Seen, since: from.Since, result: from.Result, err: from.Err, start: from.Start,
		}
		if c.key == "" || c.run == "" || inv.children[c.key] != nil || c.result != nil && c.err != nil {
			return badSnapshot("invocation %d has a child %s twice, or without a name", inv.id, clip(c.key))
		}
		if inv.children == nil {
			inv.children = make(map[string]*child)
		}
		inv.children[c.key] = c
		// A child that has ended only keeps its result for a retry.
		if c.ended() {
			continue
		}
		if s.children[c.run] != nil {
			return badSnapshot("child %s belongs to two invocations", clip(c.run))
		}
		s.children[c.run] = c
	}
	return nil
}

// asked gives an invocation the calls of resources that it has made.
func (l *runLoader) asked(inv *invocation, saved *savedInvocation) error {
	if inv.askedBytes = saved.AskedBytes; inv.askedBytes < 0 {
		return badSnapshot("the calls of invocation %d have %d bytes", inv.id, inv.askedBytes)
	}
	for i := range saved.Asked {
		from := &saved.Asked[i]
		c := &outcall{inv: inv, attempt: from.Attempt, n: from.N, order: from.Order, part: &from.Part, id: from.ID, value: from.Value, err: from.Err, streamed: from.Streamed}
		copy(c.hash[:], from.Hash)
		_, declared := inv.run.graph.resources[from.Part.Resource]
		switch {
		case from.Streamed < 0 || (from.Streamed > 0) != (len(from.Hash) == len(c.hash)) || from.Streamed == 0 && len(from.Hash) > 0:
			return badSnapshot("the streamed text of the call of %s by invocation %d is inconsistent", clip(from.Part.Resource), inv.id)
		case !declared || !from.Part.Mode.Valid() || c.value != nil && c.err != nil || inv.asked[c.id] != nil:
			return badSnapshot("invocation %d has called %s twice, or in a way that it cannot", inv.id, clip(from.Part.Resource))
		// A call without an answer must be the one that the invocation waits for.
		case !c.answered() && (saved.Suspension == nil || c.id != callID(from.Part.Resource, from.Part.Method, from.Part.Payload, from.Part.Ordinal)):
			return badSnapshot("the call of %s by invocation %d is not under way", clip(from.Part.Resource), inv.id)
		case c.order == 0 || c.order > l.s.lastCall || l.calls[c.order]:
			return badSnapshot("call %d appears twice, or was never made", c.order)
		}
		if l.calls == nil {
			l.calls = make(map[uint64]bool)
		}
		l.calls[c.order] = true
		if inv.asked == nil {
			inv.asked = make(map[string]*outcall)
		}
		inv.asked[c.id] = c
	}
	return nil
}

// suspend suspends an invocation as it was.
func (l *runLoader) suspend(inv *invocation, saved *savedSuspension) error {
	on := &suspension{n: saved.N}
	kind, things := timerSleep, 0
	for _, set := range []bool{saved.Waiter != nil, saved.Child != nil, saved.Call != nil} {
		if set {
			things++
		}
	}
	switch {
	case things > 1:
		return badSnapshot("invocation %d waits for %d things", inv.id, things)
	case saved.Waiter != nil:
		kind = timerWait
		w := inv.waiters[saved.Waiter.ID]
		if w == nil || w.answer != nil {
			return badSnapshot("invocation %d waits for an event that has arrived", inv.id)
		}
		on.waiter = w
		// Waits are enlisted when all runs are there, in the order in which they began.
		l.wants = append(l.wants, wanting{w, requirement{fields: saved.Waiter.Fields, values: string(saved.Waiter.Values)}})
	case saved.Child != nil:
		on.child = inv.children[*saved.Child]
		if on.child == nil || on.child.ended() || saved.Timer != nil {
			return badSnapshot("invocation %d does not wait for a running child", inv.id)
		}
	case saved.Call != nil:
		on.call = inv.asked[*saved.Call]
		if on.call == nil || on.call.answered() || saved.Timer != nil || on.call.attempt != inv.attempt || on.call.n != saved.N {
			return badSnapshot("invocation %d does not wait for an open call", inv.id)
		}
		l.s.calls[inv.id] = on.call
	// Nothing but a timer ends a sleep.
	case saved.Timer == nil:
		return badSnapshot("invocation %d sleeps for ever", inv.id)
	}
	var err error
	if on.timer, err = l.timer(saved.Timer, kind, l.r, inv); err != nil {
		return err
	}
	for id, c := range inv.asked {
		if !c.answered() && c != on.call {
			return badSnapshot("invocation %d does not wait for the call %s", inv.id, clip(id))
		}
	}
	inv.suspended = on
	l.r.pools[inv.step.index].suspended++
	return nil
}
