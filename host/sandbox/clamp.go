package sandbox

import "encoding/binary"

// clampTables gives every table a maximum, so that all of them together stay
// within the limit: without one, table.grow takes the host's memory (76 bytes
// of module took 1 GB). What the tables do not begin with is shared out evenly.
// It returns the module itself when there is nothing to change.
func clampTables(wasm []byte, m *binaryModule, entries int) []byte {
	if len(m.tables) == 0 {
		return wasm
	}
	spare := uint64(max(entries, 0))
	for _, t := range m.tables {
		spare -= min(t.min, spare)
	}
	spare /= uint64(len(m.tables))
	changed := false
	section := binary.AppendUvarint(nil, uint64(len(m.tables)))
	for _, t := range m.tables {
		limit := t.min + spare
		if t.flags&limitsHasMax == 0 || t.max > limit {
			t.flags, t.max, changed = t.flags|limitsHasMax, limit, true
		}
		section = append(section, t.refType, t.flags)
		section = binary.AppendUvarint(section, t.min)
		section = binary.AppendUvarint(section, t.max)
	}
	if !changed {
		return wasm
	}
	at := m.sections[sectionTable]
	runs := make([]byte, 0, len(wasm)+len(section))
	runs = append(runs, wasm[:at.start]...)
	runs = appendSection(runs, sectionTable, section)
	return append(runs, wasm[at.end:]...)
}

// appendSection adds a section with the given payload to a module.
func appendSection(to []byte, id byte, payload []byte) []byte {
	to = binary.AppendUvarint(append(to, id), uint64(len(payload)))
	return append(to, payload...)
}
