package wefttest

import "slices"

// staged is what an atomic step has done that shows once it has succeeded.
type staged struct {
	state   any // before
	effects []func()
}

// notAtomic are the calls that an atomic step may not make.
var notAtomic = []string{"wait_for_event", "sleep", "run_workflow", "call_resource", "collect_events"}

// refused tells whether the step may not make a call.
func (c *calls) refused(name string) bool { return c.staged != nil && slices.Contains(notAtomic, name) }

// stage begins an atomic step. Its edits are made at once, as it sees them and
// nobody else runs meanwhile.
func (c *calls) stage() error {
	state, err := clone(c.run.session.store.state)
	c.staged = &staged{state: state}
	return err
}

// effect lets something take effect: at once, or when the atomic step succeeds.
func (c *calls) effect(do func()) {
	if c.staged == nil {
		do()
		return
	}
	c.staged.effects = append(c.staged.effects, do)
}

// settle lets what an atomic step did take effect, or takes it back.
func (c *calls) settle(succeeded bool) {
	st := c.staged
	switch {
	case st == nil:
	case !succeeded:
		c.run.session.store.state = st.state
	default:
		for _, do := range st.effects {
			do()
		}
	}
}
