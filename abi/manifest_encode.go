package abi

import "github.com/weftrun/weft/abi/cbor"

// What a step may catch in addition to the failures of other steps. Both are reserved as
// step names.
const (
	CatchCancelled = "cancelled"
	CatchTimeout   = "timeout"
)

// Keywords in the manifest's arrays.
const (
	catchAll = "*"
	slotAny  = "any"
	slotList = "list"
)

// Encode writes the manifest. The error, a *[DataError], names the field that violates a
// rule of abi.cddl.
func (m Manifest) Encode() ([]byte, error) {
	b, err := encode(m, 1024, writeManifest)
	if err != nil {
		return nil, err
	}
	// Authors nest policies as they like, and write schemas by hand.
	if err := CheckValue(b, MaxMessageDepth); err != nil {
		return nil, err
	}
	return b, nil
}

func writeManifest(e *encoder, m Manifest) {
	mark := e.openMap()
	e.key(mark, "abi")
	e.check("abi", versionFault(m.ABI))
	e.uint(m.ABI)
	e.flag(mark, "part", m.Part)
	if m.State != nil {
		e.key(mark, "state")
		writeState(e, m.State)
	}
	e.key(mark, "steps")
	if len(m.Steps) == 0 {
		e.fail("steps", tooFew(0, 1))
	}
	writeAll(e, "steps", m.Steps, writeStep)
	e.key(mark, "events")
	writeEventDecls(e, m.Events)
	if m.Timeout != nil {
		e.key(mark, "timeout")
		e.duration("timeout", *m.Timeout)
	}
	e.note(mark, "version", m.Version)
	e.key(mark, "workflow")
	e.workflowName("workflow", m.Workflow)
	if len(m.Resources) > 0 {
		e.key(mark, "resources")
		writeAll(e, "resources", m.Resources, writeResource)
	}
	e.note(mark, "description", m.Description)
}

// flag writes a key with true, if v is true.
func (e *encoder) flag(mark int, key string, v bool) {
	if v {
		e.key(mark, key)
		e.bool(true)
	}
}

// note writes a key with free text, unless the text is empty.
func (e *encoder) note(mark int, key, s string) {
	if s != "" {
		e.key(mark, key)
		e.text(key, s)
	}
}

// optionalMap writes a key with a map, unless the map is absent.
func (e *encoder) optionalMap(mark int, key string, r Raw) {
	if r != nil {
		e.key(mark, key)
		e.mapValue(key, r)
	}
}

func writeState(e *encoder, s *StateDecl) {
	e.push(segment{name: "state", index: -1})
	mark := e.openMap()
	e.optionalMap(mark, "schema", s.Schema)
	e.optionalMap(mark, "default", s.Default)
	e.pop()
}

func writeResource(e *encoder, r *ResourceDecl) {
	mark := e.openMap()
	e.key(mark, "kind")
	e.text("kind", r.Kind)
	e.key(mark, "name")
	e.name("name", r.Name)
	e.flag(mark, "optional", r.Optional)
	e.note(mark, "description", r.Description)
}

func writeEventDecls(e *encoder, decls map[string]EventDecl) {
	e.push(segment{name: "events", index: -1})
	e.b = cbor.AppendHead(e.b, cbor.Map, uint64(len(decls)))
	for _, name := range sortedKeys(decls) {
		e.typeName(segmentOf([]byte(name)), name)
		e.push(segment{name: segmentOf([]byte(name)), index: -1})
		decl := decls[name]
		writeEventDecl(e, &decl)
		e.pop()
	}
	e.pop()
}

func writeEventDecl(e *encoder, v *EventDecl) {
	mark := e.openMap()
	if v.Kind != KindPlain {
		e.check("kind", kindFault(v.Kind))
		e.note(mark, "kind", string(v.Kind))
	}
	e.optionalMap(mark, "schema", v.Schema)
	if v.Extends != "" {
		e.key(mark, "extends")
		e.typeName("extends", v.Extends)
	}
	e.note(mark, "description", v.Description)
}

func writeStep(e *encoder, s *StepDecl) {
	mark := e.openMap()
	e.key(mark, "name")
	e.textOf("name", s.Name, stepNameFault)
	if len(s.Emits) > 0 {
		e.key(mark, "emits")
		writeAll(e, "emits", s.Emits, writeEmit)
	}
	if s.Retry != nil {
		e.key(mark, "retry")
		writeRetryPolicy(e, s.Retry)
	}
	if len(s.Waits) > 0 {
		e.key(mark, "waits")
		writeAll(e, "waits", s.Waits, writeTypeName)
	}
	e.flag(mark, "atomic", s.Atomic)
	e.key(mark, "accepts")
	if len(s.Accepts) == 0 {
		e.fail("accepts", tooFew(0, 1))
	}
	writeAll(e, "accepts", s.Accepts, writeSlot)
	writeCatches(e, mark, s)
	if s.Timeout != 0 {
		e.key(mark, "timeout")
		e.duration("timeout", s.Timeout)
	}
	if s.Workers != 0 {
		e.key(mark, "workers")
		e.check("workers", workersFault(uint64(max(s.Workers, 0))))
		e.uint(uint64(s.Workers))
	}
	e.note(mark, "description", s.Description)
	if s.MaxRecoveries != nil {
		e.key(mark, "max_recoveries")
		e.uint(*s.MaxRecoveries)
	}
	e.flag(mark, "accept_subtypes", s.AcceptSubtypes)
}

func writeCatches(e *encoder, mark int, s *StepDecl) {
	switch {
	case s.CatchesAll && len(s.Catches) > 0:
		e.fail("catches", `must be names or "*", not both`)
	case s.CatchesAll:
		e.note(mark, "catches", catchAll)
	case len(s.Catches) > 0:
		e.key(mark, "catches")
		writeAll(e, "catches", s.Catches, func(e *encoder, s *string) { e.name("", *s) })
	}
}

func writeSlot(e *encoder, s *Slot) {
	if s.Take != 0 && s.Kind != SlotList {
		e.fail("take", "is for lists only")
	}
	switch s.Kind {
	case SlotOne:
		writeOneType(e, s.Types)
		return
	case SlotAny:
		e.array(2)
		e.text("kind", slotAny)
	case SlotList:
		if s.Take == 0 {
			e.array(2)
		} else {
			e.array(3)
		}
		e.text("kind", slotList)
	default:
		e.fail("kind", "unknown kind of slot")
	}
	writeTypes(e, s.Types)
	if s.Take != 0 {
		e.check("take", takeFault(s.Take))
		e.uint(s.Take)
	}
}

func writeEmit(e *encoder, m *Emit) {
	if !m.List {
		writeOneType(e, m.Types)
		return
	}
	e.array(2)
	e.text("kind", slotList)
	writeTypes(e, m.Types)
}

// writeOneType writes the type of a slot or emit with exactly one type.
func writeOneType(e *encoder, types []string) {
	if len(types) != 1 {
		e.fail("types", "must be exactly one")
		return
	}
	e.typeName("", types[0])
}

func writeTypes(e *encoder, types []string) {
	if len(types) == 0 {
		e.fail("types", tooFew(0, 1))
	}
	writeAll(e, "types", types, writeTypeName)
}
