package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// rewriterVersion names what clampTables does. It is part of the digest of
// what runs, and changes when the same module would run as other bytes.
const rewriterVersion = "weft-rewrite-1"

// Rewritten gives the digest of what the sandbox runs in place of the given
// module: SHA-256, in hex, over the rewriter's version, a zero byte and the
// rewritten bytes. So far only the maxima of tables are rewritten.
func (s *Sandbox) Rewritten(wasm []byte) string {
	m, err := readModule(wasm)
	if err != nil {
		return rewrittenDigest(wasm)
	}
	return rewrittenDigest(clampTables(wasm, m, s.limits.TableEntries))
}

func rewrittenDigest(runs []byte) string {
	h := sha256.New()
	h.Write([]byte(rewriterVersion + "\x00"))
	h.Write(runs)
	return hex.EncodeToString(h.Sum(nil))
}

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
	runs := make([]byte, 0, len(wasm)+len(section))
	runs = append(runs, wasm[:m.tableSection[0]]...)
	runs = append(runs, sectionTable)
	runs = binary.AppendUvarint(runs, uint64(len(section)))
	runs = append(runs, section...)
	return append(runs, wasm[m.tableSection[1]:]...)
}
