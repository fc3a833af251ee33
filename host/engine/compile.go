package engine

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/state"
)

// step compiles one declaration, as far as possible without the others.
func (c *compiler) step(decl *abi.StepDecl) {
	name := decl.Name
	st := &step{index: len(c.g.steps), name: name, decl: decl, workers: decl.Workers, maxRecoveries: 1}
	switch {
	case name == "" || len(name) > abi.MaxName:
		c.problem("invalid_name", name, "", "a step's name has 1 to %d bytes, not %d", abi.MaxName, len(name))
	case name == abi.CatchCancelled || name == abi.CatchTimeout:
		c.problem("reserved_name", name, "", "%q is reserved and cannot name a step: choose another name", name)
	case c.g.byName[name] != nil:
		// The step is compiled anyway, so that its other problems are reported too.
		c.problem("duplicate_step", name, "", "two steps are called %s: rename one of them", name)
	}
	if c.g.byName[name] == nil {
		c.g.byName[name] = st
	}
	c.g.steps = append(c.g.steps, st)
	if st.workers == 0 {
		st.workers = defaultWorkers
	}
	if st.workers < 1 || st.workers > abi.MaxWorkers {
		c.problem("out_of_range", name, "", "step %s has %d workers: it needs 1 to %d", name, decl.Workers, abi.MaxWorkers)
	}
	if decl.Timeout < 0 {
		c.problem("out_of_range", name, "", "step %s has a negative timeout: leave it out for none", name)
	}
	if decl.MaxRecoveries != nil {
		st.maxRecoveries = *decl.MaxRecoveries
	}
	c.atomic(decl)
	c.slots(st)
	c.emits(st)
	c.waits(st)
	c.retryPolicy(st)
}

// waits checks the types that a step waits for.
func (c *compiler) waits(st *step) {
	st.waits = make(map[string]bool, len(st.decl.Waits))
	for _, typ := range st.decl.Waits {
		t, known := c.g.types[typ]
		switch {
		case IsRuntimeType(typ):
			c.problem("waits_runtime_type", st.name, typ, "step %s waits for %s, which never reaches a step: wait for a type of your own", st.name, typ)
			continue
		case !known:
			c.problem("unknown_type", st.name, typ, "step %s waits for %s, which is not declared: declare it in events", st.name, clip(typ))
			continue
		case t.kind == abi.KindStart || t.kind == abi.KindStop:
			c.problem("waits_for_ends", st.name, typ, "step %s waits for %s, which begins or ends a run: wait for a type of your own", st.name, typ)
			continue
		}
		t.used = true
		st.waits[typ] = true
	}
	for typ := range c.g.closure(sortedKeys(st.waits), st.decl.AcceptSubtypes) {
		c.g.waits[typ] = append(c.g.waits[typ], st)
	}
}

// atomic checks that an atomic step does not wait.
func (c *compiler) atomic(decl *abi.StepDecl) {
	if decl.Atomic && len(decl.Waits) > 0 {
		c.problem("atomic_waits", decl.Name, decl.Waits[0], "step %s is atomic and waits for %s, which an atomic step may not: leave its waits out, or atomic", decl.Name, clip(decl.Waits[0]))
	}
}

// slots checks what a step accepts, and finds its mode.
func (c *compiler) slots(st *step) {
	accepts := st.decl.Accepts
	if n := len(accepts); n == 0 || n > maxSlots {
		c.problem("out_of_range", st.name, "", "step %s accepts %d slots: it needs 1 to %d", st.name, n, maxSlots)
		// Later code may look at the first slot without a check.
		st.decl = &abi.StepDecl{Name: st.name, Accepts: []abi.Slot{{Types: []string{""}}}}
		return
	}
	if len(accepts) > 1 {
		st.mode = modeJoin
	}
	for _, slot := range accepts {
		switch {
		case slot.Kind != abi.SlotList:
		case len(accepts) > 1:
			c.problem("join_with_list", st.name, "", "step %s joins a list with other events: collect the list in a step of its own and join what that emits", st.name)
		default:
			st.mode, st.take = modeCollect, slot.Take
		}
		if len(slot.Types) == 0 || len(slot.Types) > maxTypes {
			c.problem("out_of_range", st.name, "", "a slot of step %s names %d event types: it needs 1 to %d", st.name, len(slot.Types), maxTypes)
		}
		for _, typ := range slot.Types {
			c.accepted(st, typ)
		}
	}
}

// accepted checks one type that a step accepts.
func (c *compiler) accepted(st *step, typ string) {
	t, known := c.g.types[typ]
	catches := st.decl.CatchesAll || len(st.decl.Catches) > 0
	switch {
	case typ == abi.TypeStepFailed && !catches:
		c.problem("accepts_runtime_type", st.name, typ, "step %s accepts %s but catches nobody's failures: name the steps in catches", st.name, typ)
	case typ == abi.TypeStepFailed && st.mode != modeOne:
		c.problem("accepts_runtime_type", st.name, typ, "step %s joins or collects %s: accept it in a step of its own", st.name, typ)
	case typ == abi.TypeStepFailed:
	case IsRuntimeType(typ):
		c.problem("accepts_runtime_type", st.name, typ, "step %s accepts %s, which never reaches a step: leave it out", st.name, typ)
	case !known:
		c.problem("unknown_type", st.name, typ, "step %s accepts %s, which is not declared: declare it in events", st.name, clip(typ))
	case t.kind == abi.KindStop:
		// The type is used, though wrongly: do not report it as unused too.
		t.used = true
		c.problem("accepts_stop", st.name, typ, "step %s accepts the stop event %s, but that ends the run: let it accept the event before", st.name, typ)
	default:
		t.used = true
	}
}

// emits checks what a step emits.
func (c *compiler) emits(st *step) {
	var single []string
	for _, emit := range st.decl.Emits {
		if len(emit.Types) == 0 || len(emit.Types) > maxTypes || !emit.List && len(emit.Types) > 1 {
			c.problem("out_of_range", st.name, "", "an emit of step %s names %d event types: a single one names 1, a list 1 to %d", st.name, len(emit.Types), maxTypes)
			continue
		}
		for _, typ := range emit.Types {
			c.emitted(st, typ, emit.List)
		}
		if emit.List {
			st.lists = append(st.lists, listEmit{types: c.g.closure(emit.Types, true)})
		} else {
			single = append(single, emit.Types[0])
		}
	}
	st.single = c.g.closure(single, true)
	st.out = maps.Clone(st.single)
	for _, list := range st.lists {
		maps.Copy(st.out, list.types)
	}
}

// emitted checks one type that a step emits.
func (c *compiler) emitted(st *step, typ string, list bool) {
	t, known := c.g.types[typ]
	if known {
		t.used = true
	}
	switch {
	case IsRuntimeType(typ):
		c.problem("emits_runtime_type", st.name, typ, "step %s emits %s, which only the server makes: emit a type of your own", st.name, typ)
	case !known:
		c.problem("unknown_type", st.name, typ, "step %s emits %s, which is not declared: declare it in events", st.name, clip(typ))
	case t.kind == abi.KindStart:
		c.problem("emits_start", st.name, typ, "step %s emits the start event %s, which only begins a run: emit a type of your own that the first step accepts too", st.name, typ)
	case t.kind == abi.KindStop && list:
		c.problem("emits_stop_list", st.name, typ, "step %s emits a list of the stop event %s, but a run ends once: emit it alone", st.name, typ)
	}
}

// catchers finds for each step the step that catches its failures: one that names the
// step or, failing that, the one that catches all.
func (c *compiler) catchers() {
	var all *step
	for _, st := range c.g.steps {
		d := st.decl
		if !d.CatchesAll && len(d.Catches) == 0 {
			continue
		}
		if !acceptsFailures(d) {
			c.problem("catch_without_slot", st.name, abi.TypeStepFailed, "step %s catches failures but does not accept %s: accept it", st.name, abi.TypeStepFailed)
		}
		switch {
		case d.CatchesAll && all != nil:
			c.problem("several_catchers", st.name, "", "steps %s and %s both catch all failures: let one of them name the steps it means", all.name, st.name)
		case d.CatchesAll:
			all = st
		}
		for _, target := range d.Catches {
			c.catch(st, target)
		}
	}
	for _, st := range c.g.steps {
		// A step cannot catch its own failures: a failing catcher would invoke itself.
		if st.catcher == nil && st != all {
			st.catcher = all
		}
	}
}

func (c *compiler) catch(st *step, target string) {
	failing := c.g.byName[target]
	switch {
	case target == abi.CatchCancelled || target == abi.CatchTimeout:
		if clean := c.g.cleaners[target]; !slices.Contains(clean, st) {
			c.g.cleaners[target] = append(clean, st)
		}
	case failing == nil && c.m.Part: // it may be a step of another part
	case failing == nil:
		c.problem("unknown_catch_target", st.name, "", "step %s catches the failures of %s, which is not a step: name a step, or \"*\" for all", st.name, clip(target))
	case failing == st:
		c.problem("catches_itself", st.name, "", "step %s catches its own failures: give it a retry policy, or let another step catch them", st.name)
	case failing.catcher != nil && failing.catcher != st:
		c.problem("several_catchers", st.name, "", "steps %s and %s both catch the failures of %s: let only one of them name it", failing.catcher.name, st.name, target)
	default:
		failing.catcher = st
	}
}

func acceptsFailures(d *abi.StepDecl) bool {
	for _, slot := range d.Accepts {
		if slices.Contains(slot.Types, abi.TypeStepFailed) {
			return true
		}
	}
	return false
}

// state compiles the schema of the session state and checks the defaults.
func (c *compiler) state() {
	decl := c.m.State
	if decl == nil {
		return
	}
	if decl.Schema != nil {
		schema, err := state.CompileSchema(decl.Schema)
		if err != nil {
			c.problem("state_schema", "", "", "the state's schema cannot be used: %s", err)
		}
		c.g.schema = schema
	}
	if decl.Default != nil {
		defaults, err := state.Decode(decl.Default)
		if err != nil || !defaults.IsMap() {
			c.problem("state_default", "", "", "the state's defaults are not a map of values")
			return
		}
		c.g.defaults = defaults
	}
	if c.g.schema == nil {
		return
	}
	// A run may begin on an empty state, so the defaults alone must satisfy the schema.
	fresh, _ := state.FillDefaults(state.Empty(), c.g.defaults)
	if err := c.g.schema.Check(fresh, nil); err != nil {
		path, reason := "", err.Error()
		if breach := (*state.SchemaError)(nil); errors.As(err, &breach) {
			path, reason = breach.Path, breach.Reason
		}
		c.problem("state_default", "", "", "the state's defaults break its schema at %q: %s: give every required field a default that fits", path, reason)
	}
}

// retryPolicy refuses rules that do not give a sensible delay.
func (c *compiler) retryPolicy(st *step) {
	p := st.decl.Retry
	if p == nil {
		return
	}
	if p.Wait != nil {
		if fault := waitFault(p.Wait); fault != "" {
			c.problem("retry_policy", st.name, "", "the retry policy of step %s cannot be used: %s", st.name, fault)
		}
	}
}

func waitFault(w *abi.WaitRule) string {
	base := 1.0
	switch {
	case w.Exponential != nil:
		base = w.Exponential.Base
	case w.ExponentialJitter != nil:
		base = w.ExponentialJitter.Base
	case w.Random != nil && w.Random[0] > w.Random[1]:
		return "the longest random wait is shorter than the shortest"
	}
	// A comparison with NaN is false, so this refuses NaN too.
	if !(base > 0) || math.IsInf(base, 0) {
		return "the base of an exponential wait must be a number above 0"
	}
	for _, parts := range [][]abi.WaitRule{w.Chain, w.Sum} {
		for i := range parts {
			if fault := waitFault(&parts[i]); fault != "" {
				return fault
			}
		}
	}
	return ""
}
