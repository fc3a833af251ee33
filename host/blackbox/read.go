package blackbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/weftrun/weft/host/deaths"
)

// Offsets in a slot. A suspect's record has counts in place of a slot's word.
const (
	slotWord       = 0 // 0: free
	slotKind       = 8
	slotInvocation = 16
	slotAttempt    = 24
	slotKept       = 32
	slotCalls      = 40
	slotBurnt      = 48
	slotDigest     = 56
	slotStep       = 64
	slotImport     = 72  // preceded by a byte with its length
	slotNames      = 104 // two lengths, then tenant and session

	recordBlamed = slotBytes - 20
	recordCounts = slotBytes - 16
	recordNames  = recordBlamed - slotNames - 4 // bytes for both names
)

// Found is the content of a file.
type Found struct {
	deaths.Death
	boot, life    [16]byte
	group, system uint64
	store         [16]byte
	commits       uint64
}

// Read reads the file in a directory. The file belongs to a process that has ended, or to
// a running process; then Read returns its present content. The class of the death is not
// set.
//
// # Errors
//
// [os.ErrNotExist] if the file is missing, and others if the file is damaged or cannot be
// read.
func Read(dir string) (*Found, error) {
	f, err := os.Open(filepath.Join(dir, File))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // opened for reading only
	most := int64(headerBytes + maxSlots*slotBytes + 2*halfBytes)
	image, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	return decode(image)
}

// decode reads a file's content.
func decode(image []byte) (*Found, error) {
	if len(image) < headerBytes || string(image[:len(magic)]) != magic {
		return nil, errors.New("not a black box file")
	}
	if n := get32(image[atLayout:]); n != layout {
		return nil, fmt.Errorf("the file has layout %d, this version reads %d", n, layout)
	}
	if get32(image[atCRC:]) != crcOf(image[:atCRC]) {
		return nil, errors.New("the header's checksum does not match")
	}
	slots := int(get32(image[atSlots:]))
	if slots < 0 || slots > maxSlots || len(image) != headerBytes+slots*slotBytes+2*halfBytes {
		return nil, fmt.Errorf("a file of %d slots has %d bytes", slots, len(image))
	}
	found := &Found{group: get64(image[atGroup:]), system: get64(image[atSystem:])}
	copy(found.boot[:], image[atBoot:])
	copy(found.store[:], image[atStore:])
	found.commits = get64(image[atCommits:])
	copy(found.life[:], image[atLife:])
	found.Phase = deaths.CorePhase(get64(image[atPhase:]))
	found.MemoryDeaths = [2]int64{int64(get64(image[atMemory:])), int64(get64(image[atMemory+8:]))}
	for i := range slots {
		at := image[headerBytes+i*slotBytes:][:slotBytes]
		if get64(at[slotWord:]) == 0 {
			continue
		}
		n, err := decodeNote(at, slotBytes-slotNames-4)
		if err != nil {
			return nil, fmt.Errorf("slot %d: %w", i, err)
		}
		found.Noted = append(found.Noted, n)
	}
	var err error
	found.Suspects, err = decodeHalf(image, slots, int(get64(image[atInForce:])&1))
	return found, err
}

func decodeNote(at []byte, most int) (n deaths.CoreNote, err error) {
	n.Kind = deaths.CoreKind(get64(at[slotKind:]))
	if n.Kind < deaths.CoreRun || n.Kind > deaths.CoreLoad {
		return n, fmt.Errorf("unknown kind %d", n.Kind)
	}
	n.Invocation, n.Attempt = get64(at[slotInvocation:]), get64(at[slotAttempt:])
	n.Kept, n.Calls, n.Burnt = get64(at[slotKept:]), get64(at[slotCalls:]), get64(at[slotBurnt:])
	copy(n.Digest[:], at[slotDigest:])
	copy(n.Step[:], at[slotStep:])
	if length := int(at[slotImport]); length > 0 {
		if length > slotNames-slotImport-1 {
			return n, fmt.Errorf("an import's name of %d bytes", length)
		}
		n.Import = string(at[slotImport+1:][:length])
	}
	tenant, session := int(get16(at[slotNames:])), int(get16(at[slotNames+2:]))
	if tenant+session > most {
		return n, fmt.Errorf("names of %d bytes", tenant+session)
	}
	names := at[slotNames+4:]
	n.Tenant, n.Session = string(names[:tenant]), string(names[tenant:][:session])
	return n, nil
}

// half returns the offset of a half of the suspects.
func half(slots, which int) int { return headerBytes + slots*slotBytes + which*halfBytes }

// fillHalf writes suspects to a half. It omits suspects beyond MaxSuspects and suspects
// whose names are too long for a record.
func fillHalf(image []byte, slots, which int, list []deaths.Suspect) {
	area := image[half(slots, which):][:halfBytes]
	n := 0
	for i := range list {
		s := &list[i]
		if n == MaxSuspects || len(s.Tenant)+len(s.Session) > recordNames {
			continue
		}
		at := area[n*recordBytes:][:recordBytes]
		put64(at[slotKind:], uint64(s.Kind))
		put64(at[slotInvocation:], s.Invocation)
		put64(at[slotAttempt:], s.Attempt)
		put64(at[slotKept:], s.Kept)
		put64(at[slotCalls:], s.Calls)
		put64(at[slotBurnt:], s.Burnt)
		copy(at[slotDigest:], s.Digest[:])
		copy(at[slotStep:], s.Step[:])
		at[slotImport] = byte(copy(at[slotImport+1:slotNames], s.Import))
		put16(at[slotNames:], uint16(len(s.Tenant)))
		put16(at[slotNames+2:], uint16(len(s.Session)))
		copy(at[slotNames+4+copy(at[slotNames+4:], s.Tenant):], s.Session)
		blamed := uint32(0)
		if s.Blamed {
			blamed = 1
		}
		put32(at[recordBlamed:], blamed)
		for j, count := range []uint32{s.Noted, s.Alone, s.Hard, s.Same} {
			put32(at[recordCounts+4*j:], count)
		}
		n++
	}
	put32(image[atHalf+8*which:], uint32(n))
	put32(image[atHalf+8*which+4:], crcOf(area[:n*recordBytes]))
}

func decodeHalf(image []byte, slots, which int) ([]deaths.Suspect, error) {
	area := image[half(slots, which):][:halfBytes]
	n := int(get32(image[atHalf+8*which:]))
	if n < 0 || n > MaxSuspects {
		return nil, fmt.Errorf("%d suspects", n)
	}
	if get32(image[atHalf+8*which+4:]) != crcOf(area[:n*recordBytes]) {
		return nil, errors.New("the checksum of the suspects does not match")
	}
	var list []deaths.Suspect
	for i := range n {
		at := area[i*recordBytes:][:recordBytes]
		note, err := decodeNote(at, recordNames)
		if err != nil {
			return nil, fmt.Errorf("suspect %d: %w", i, err)
		}
		count := func(j int) uint32 { return get32(at[recordCounts+4*j:]) }
		list = append(list, deaths.Suspect{CoreNote: note, Noted: count(0), Alone: count(1), Hard: count(2), Same: count(3), Blamed: get32(at[recordBlamed:]) != 0})
	}
	return list, nil
}

var (
	get16 = binary.LittleEndian.Uint16
	get32 = binary.LittleEndian.Uint32
	get64 = binary.NativeEndian.Uint64
)

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
