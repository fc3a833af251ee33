package faultdisk

import (
	"bytes"
	"math/rand/v2"

	code "modernc.org/sqlite/lib"
)

// file is a file on a disk. The disk's mutex guards it.
type file struct {
	path    string
	users   int
	content []byte   // what the disk has kept
	dirty   []change // changes since, in order
	named   bool     // the disk has its name
	known   bool     // its time shows whether others have changed it
}

// change is a write, or a truncation if data is nil.
type change struct {
	at   int64
	data []byte
}

func (f *file) wrote(at int64, data []byte) {
	f.dirty = append(f.dirty, change{at, bytes.Clone(data)})
}

func (f *file) truncated(size int64) { f.dirty = append(f.dirty, change{at: size}) }

// apply returns the content after the changes. It reuses the memory of content.
func (f *file) apply(changes []change) []byte {
	content := f.content
	for _, c := range changes {
		end := c.at + int64(len(c.data))
		if missing := end - int64(len(content)); missing > 0 {
			content = append(content, make([]byte, missing)...)
		}
		if c.data == nil {
			content = content[:c.at]
			continue
		}
		copy(content[c.at:], c.data)
	}
	return content
}

// survived returns what the disk has of the file after a power cut: some of the changes.
func (f *file) survived(rng *rand.Rand) []byte {
	var kept []change
	switch n := len(f.dirty); rng.IntN(5) {
	case 0: // none
	case 1:
		kept = append(kept, f.dirty...)
	case 2:
		kept = append(kept, f.dirty[:rng.IntN(n+1)]...)
	case 3: // in another order, sector by sector
		for _, c := range f.dirty {
			kept = append(kept, sectors(rng, c)...)
		}
		return f.apply(kept)
	default:
		for _, c := range f.dirty {
			if rng.IntN(2) == 0 {
				kept = append(kept, c)
			}
		}
	}
	if n := len(kept); n > 0 && kept[n-1].data != nil && rng.IntN(2) == 0 {
		last := &kept[n-1]
		last.data = last.data[:tornAt(rng, len(last.data), last.at)]
		if len(last.data) == 0 {
			kept = kept[:n-1]
		}
	}
	return f.apply(kept)
}

// sectors returns the sectors of a change that the disk wrote before the power cut.
func sectors(rng *rand.Rand, c change) (kept []change) {
	if c.data == nil {
		return []change{c}
	}
	for at := c.at; at < c.at+int64(len(c.data)); {
		end := min((at/sector+1)*sector, c.at+int64(len(c.data)))
		if rng.IntN(2) == 0 {
			kept = append(kept, change{at, c.data[at-c.at : end-c.at]})
		}
		at = end
	}
	return kept
}

// failedOf returns the error that SQLite gets from an operation on a disk without power.
func failedOf(op Op) int32 {
	switch op {
	case Sync:
		return code.SQLITE_IOERR_FSYNC
	case Truncate:
		return code.SQLITE_IOERR_TRUNCATE
	}
	return code.SQLITE_IOERR_WRITE
}
