package abi

import (
	"fmt"

	"github.com/weftrun/weft/abi/cbor"
)

var (
	manifestFields = fieldSet{required: 4, keys: []string{
		"abi", "workflow", "steps", "events", "version", "description", "part", "state", "resources", "timeout",
	}}
	stateFields    = fieldSet{keys: []string{"schema", "default"}}
	resourceFields = fieldSet{required: 2, keys: []string{"name", "kind", "description", "optional"}}
	stepFields     = fieldSet{required: 2, keys: []string{
		"name", "accepts", "emits", "workers", "timeout", "retry", "catches", "max_recoveries", "waits",
		"accept_subtypes", "atomic", "description",
	}}
	eventFields = fieldSet{keys: []string{"kind", "extends", "schema", "description"}}
)

// DecodeManifest reads a plugin's manifest and checks its structure: every field by the
// rules of abi.cddl. It does not check whether the steps and events form a sound
// workflow. Schemas and defaults share b's memory where b is canonical, so b must not be
// modified afterwards. The error, a *[DataError], names the field.
func DecodeManifest(b []byte) (Manifest, error) { return decode(b, readManifest) }

func readManifest(d *decoder) Manifest {
	var m Manifest
	d.fields("", manifestFields, func(key string) {
		switch key {
		case "abi":
			m.ABI = d.uintOf(key, versionFault)
		case "workflow":
			m.Workflow = d.workflowName(key)
		case "version":
			m.Version = d.text(key)
		case "description":
			m.Description = d.text(key)
		case "part":
			m.Part = d.bool(key)
		case "steps":
			m.Steps = list(d, key, 1, readStep)
		case "events":
			m.Events = d.eventDecls(key)
		case "state":
			m.State = new(d.stateDecl(key))
		case "resources":
			m.Resources = list(d, key, 0, readResource)
		case "timeout":
			m.Timeout = new(d.duration(key))
		}
	})
	return m
}

func versionFault(v uint64) string {
	if v == Version {
		return ""
	}
	return fmt.Sprintf("version %d is not served, only %d: needs another weft", v, Version)
}

func (d *decoder) stateDecl(field string) StateDecl {
	var s StateDecl
	d.fields(field, stateFields, func(key string) {
		switch key {
		case "schema":
			s.Schema = d.mapValue(key)
		case "default":
			s.Default = d.mapValue(key)
		}
	})
	return s
}

func readResource(d *decoder) ResourceDecl {
	var r ResourceDecl
	d.fields("", resourceFields, func(key string) {
		switch key {
		case "name":
			r.Name = d.name(key)
		case "kind":
			r.Kind = d.text(key)
		case "description":
			r.Description = d.text(key)
		case "optional":
			r.Optional = d.bool(key)
		}
	})
	return r
}

// eventDecls reads the map of event types, whose keys are data.
func (d *decoder) eventDecls(field string) map[string]EventDecl {
	start := d.off
	n := d.openItem(field, cbor.Map)
	defer d.close()
	const most = 256
	decls := make(map[string]EventDecl, min(n, most))
	for i := 0; i < n && !d.failed(); i++ {
		at := d.off
		key, next, err := d.key(at)
		if err != nil {
			d.adopt("", err)
			break
		}
		d.check(at, segmentOf(key), typeNameFault(string(key)))
		if _, twice := decls[string(key)]; twice {
			d.adopt("", duplicateKey(key, at))
		}
		if n == 1 && string(key) == bytesKey { // so that a manifest can be shown as JSON
			d.adopt("", onlyBytesKey(start))
		}
		d.off = next
		if !d.failed() {
			name := string(key)
			decls[name] = d.eventDecl(segmentOf(key))
		}
	}
	return decls
}

func (d *decoder) eventDecl(field string) EventDecl {
	var v EventDecl
	d.fields(field, eventFields, func(key string) {
		switch key {
		case "kind":
			v.Kind = EventKind(d.textOf(key, func(s string) string { return kindFault(EventKind(s)) }))
		case "extends":
			v.Extends = d.typeName(key)
		case "schema":
			v.Schema = d.mapValue(key)
		case "description":
			v.Description = d.text(key)
		}
	})
	return v
}

func readStep(d *decoder) StepDecl {
	var s StepDecl
	d.fields("", stepFields, func(key string) {
		switch key {
		case "name":
			s.Name = d.textOf(key, stepNameFault)
		case "accepts":
			s.Accepts = list(d, key, 1, readSlot)
		case "emits":
			s.Emits = list(d, key, 0, readEmit)
		case "workers":
			s.Workers = int(d.uintOf(key, workersFault))
		case "timeout":
			s.Timeout = d.duration(key)
		case "retry":
			s.Retry = new(d.retryPolicy(key))
		case "catches":
			s.Catches, s.CatchesAll = d.catches(key)
		case "max_recoveries":
			s.MaxRecoveries = new(d.uint(key))
		case "waits":
			s.Waits = list(d, key, 0, readTypeName)
		case "accept_subtypes":
			s.AcceptSubtypes = d.bool(key)
		case "atomic":
			s.Atomic = d.bool(key)
		case "description":
			s.Description = d.text(key)
		}
	})
	return s
}

// catches reads the names of the steps whose failures a step catches, or "*".
func (d *decoder) catches(field string) (names []string, all bool) {
	if d.next(cbor.Text) {
		at := d.off
		if s := d.text(field); !d.failed() && s != catchAll {
			d.failAt(at, field, `must be an array of names or "*"`)
		}
		return nil, true
	}
	return list(d, field, 0, func(d *decoder) string { return d.name("") }), false
}

func readSlot(d *decoder) Slot {
	if d.next(cbor.Text) {
		return Slot{Kind: SlotOne, Types: []string{d.typeName("")}}
	}
	var s Slot
	n := d.array("", 2, 3)
	defer d.close()
	at := d.off
	switch word := d.text("kind"); {
	case d.failed():
		return s
	case word == slotAny && n == 2:
		s.Kind = SlotAny
	case word == slotAny:
		d.failAt(at, "", tooMany(n, 2))
	case word == slotList:
		s.Kind = SlotList
	default:
		d.failAt(at, "kind", fmt.Sprintf("unknown kind of slot %q: needs a newer weft", clip(word)))
	}
	s.Types = list(d, "types", 1, readTypeName)
	if n > 2 {
		s.Take = d.uintOf("take", takeFault)
	}
	return s
}

func readEmit(d *decoder) Emit {
	if d.next(cbor.Text) {
		return Emit{Types: []string{d.typeName("")}}
	}
	d.array("", 2, 2)
	defer d.close()
	at := d.off
	if word := d.text("kind"); !d.failed() && word != slotList {
		d.failAt(at, "kind", fmt.Sprintf("unknown kind of emit %q: needs a newer weft", clip(word)))
	}
	return Emit{List: true, Types: list(d, "types", 1, readTypeName)}
}
