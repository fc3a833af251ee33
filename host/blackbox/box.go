// Package blackbox keeps a small file that says which work holds a core now, so that the
// next process knows what ran when this process ended.
//
// The package must not depend on what a run is or which work is to blame. It stores notes
// and suspects and returns them.
//
// The file is mapped and shared. The kernel keeps what was stored in the file however the
// process ends, and the file is never synced: after a reboot its contents do not count. A
// store to the file costs no system call.
//
// # Layout
//
//	header     256 bytes   identity of this life; phase; which half is in force
//	slots      512 each    one for each piece of work that holds a core
//	suspects   two halves  of 256 records of 512 bytes; one half is in force
//
// A slot's payload is written first and its word last; a half is written first and put in
// force last. Whenever the process ends, the file therefore reads as before or after a
// change. A new life builds its file beside the old file and renames it.
package blackbox

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weftrun/weft/host/deaths"
)

// Names of the files in the data directory.
const (
	File        = "weft.cores"
	crashFile   = "weft.crash"
	crashBefore = "weft.crash.before"
)

// maxCrash bounds the crash report of the previous life, in bytes.
const maxCrash = 1 << 20

const (
	magic  = "weftbox1"
	layout = 1
)

// Offsets in the header, and sizes.
const (
	headerBytes = 256
	atMagic     = 0
	atLayout    = 8
	atSlots     = 12
	atBoot      = 16
	atLife      = 32
	atEpoch     = 48 // 0: the server is not part of a cluster
	atPID       = 56
	atMemory    = 64 // two times
	atCRC       = 80 // of all bytes before it
	// The fields below change.
	atPhase   = 128
	atGroup   = 136 // OOM kills in the control group
	atSystem  = 144 // OOM kills in the system
	atInForce = 152 // which half of the suspects is in force
	atHalf    = 160 // for each half: number of suspects and CRC
	atCommits = 192 // see Position
	atStore   = 200

	slotBytes   = 512
	MaxSuspects = 256
	halfBytes   = MaxSuspects * recordBytes
	recordBytes = 512
)

// The number of slots depends on the number of cores. Some slots are reserved for runs of
// guests and not available to loads and resource calls.
const (
	slotsPerCore = 4
	slotsMore    = 32
)

// maxSlots bounds the number of slots accepted from a file.
const maxSlots = 1 << 16

// life identifies this process. A box with the same life does not report a death.
var life = func() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}()

// Box is the file of one life. Its methods may be called from any goroutine, but each
// slot belongs to the goroutine that has entered it. After a fault of the file the box
// records nothing more.
type Box struct {
	dir      string
	log      *slog.Logger
	position *Position // nil: none
	catch    bool
	slots    int
	forRuns  int // number of leading slots reserved for runs
	before   deaths.Death

	off      atomic.Bool
	taken    []atomic.Bool // by slot
	unnoted  atomic.Uint64
	suspects sync.Mutex // guards the halves

	mem  []byte
	once sync.Once
}

// Config configures a box.
type Config struct {
	Dir   string // of the data
	Cores int    // number of guests that run concurrently
	// Position is recorded in the file too. It may be nil.
	Position *Position
	// Catch makes the Go runtime write its crash report to a file beside the box. A
	// process has only one such file.
	Catch bool
	Log   *slog.Logger
}

// Open reads how the previous process ended. The caller holds the directory's lock. The
// file stays unchanged until [Box.Begin].
func Open(cfg Config) *Box {
	b := &Box{dir: cfg.Dir, log: cfg.Log, position: cfg.Position, catch: cfg.Catch, slots: slotsPerCore*cfg.Cores + slotsMore, forRuns: 2*cfg.Cores + 8}
	b.off.Store(true)
	found, err := Read(cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Warn("cannot read which work held a core: no work is suspected of ending the previous process", "file", filepath.Join(cfg.Dir, File), "error", err)
	}
	if err != nil {
		return b
	}
	boot, ok := bootID()
	switch {
	case !ok || boot != found.boot: // another machine, or this machine before a reboot
	case found.life == life: // opened again in the same process
		b.before.Suspicion = found.Suspicion
	case found.Phase == deaths.PhaseClosed:
	default:
		b.before = found.Death
		b.before.Class = b.class(found)
	}
	return b
}

// class returns why the previous process ended.
func (b *Box) class(found *Found) deaths.DeathClass {
	if info, err := os.Stat(filepath.Join(b.dir, crashFile)); err == nil && info.Size() > 0 {
		return deaths.DeathCrash
	}
	group, system := oomKills()
	if group > found.group || system > found.system {
		return deaths.DeathMemory
	}
	return deaths.DeathUnknown
}

// Before returns how the previous process ended.
func (b *Box) Before() deaths.Death { return b.before }

// Unnoted returns how many pieces of work found no free slot.
func (b *Box) Unnoted() uint64 { return b.unnoted.Load() }

// Begin replaces the file by the file of this life. A process that ends before Begin
// leaves the file of the previous life. If the file cannot be made, nothing is recorded
// in this life.
func (b *Box) Begin(s deaths.Suspicion) {
	if err := b.build(s); err != nil {
		// The old file would be counted again at the next start.
		err = errors.Join(err, ignoreAbsent(os.Remove(filepath.Join(b.dir, File))))
		b.log.Warn("cannot record which work holds a core: a step that ends the server cannot be found", "file", filepath.Join(b.dir, File), "error", err)
		return
	}
	b.off.Store(false)
	b.position.begin(b)
	if err := b.catchCrashes(); err != nil {
		b.log.Warn("crash reports of the server are not kept", "file", filepath.Join(b.dir, crashFile), "error", err)
	}
}

// build creates the file and maps it.
func (b *Box) build(s deaths.Suspicion) (err error) {
	boot, _ := bootID()
	image := make([]byte, headerBytes+b.slots*slotBytes+2*halfBytes)
	copy(image[atMagic:], magic)
	put32(image[atLayout:], layout)
	put32(image[atSlots:], uint32(b.slots))
	copy(image[atBoot:], boot[:])
	copy(image[atLife:], life[:])
	put64(image[atPID:], uint64(os.Getpid()))
	put64(image[atMemory:], uint64(s.MemoryDeaths[0]))
	put64(image[atMemory+8:], uint64(s.MemoryDeaths[1]))
	put32(image[atCRC:], crcOf(image[:atCRC]))
	phase := deaths.PhaseServing
	if len(s.Suspects) > 0 {
		phase = deaths.PhaseApart
	}
	put64(image[atPhase:], uint64(phase))
	group, system := oomKills()
	put64(image[atGroup:], group)
	put64(image[atSystem:], system)
	fillHalf(image, b.slots, 0, s.Suspects)

	made := filepath.Join(b.dir, File+".new")
	f, err := os.OpenFile(made, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(image); err != nil { // every byte: a hole would need disk space later
		return err
	}
	mem, err := mapFile(f, len(image))
	if err != nil {
		return err
	}
	if err := os.Rename(made, filepath.Join(b.dir, File)); err != nil {
		return errors.Join(err, unmapFile(mem))
	}
	b.mem, b.taken = mem, make([]atomic.Bool, b.slots)
	return nil
}

// catchCrashes renames the crash report of the previous life, and makes the runtime write
// this life's report.
func (b *Box) catchCrashes() error {
	name := filepath.Join(b.dir, crashFile)
	if info, err := os.Stat(name); err == nil && info.Size() > 0 {
		if err := os.Truncate(name, min(info.Size(), maxCrash)); err != nil {
			return err
		}
		if err := os.Rename(name, filepath.Join(b.dir, crashBefore)); err != nil {
			return err
		}
	}
	if !b.catch {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(debug.SetCrashOutput(f, debug.CrashOptions{}), f.Close()) // the runtime has its own descriptor
}

// Enter records work that begins to hold a core, and returns the slot for Leave, or a
// negative number if no slot is free. Enter keeps nothing of n and does not allocate.
func (b *Box) Enter(n *deaths.CoreNote) (slot int) {
	if b.off.Load() {
		return -1
	}
	slot = b.free(n)
	if slot < 0 {
		b.unnoted.Add(1)
		return -1
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if fault := recover(); fault != nil {
			b.fault(fault)
			slot = -1
		}
	}()
	at := b.slot(slot)
	put64(at[slotKind:], uint64(n.Kind))
	put64(at[slotInvocation:], n.Invocation)
	put64(at[slotAttempt:], n.Attempt)
	put64(at[slotKept:], n.Kept)
	put64(at[slotCalls:], n.Calls)
	put64(at[slotBurnt:], n.Burnt)
	copy(at[slotDigest:], n.Digest[:])
	copy(at[slotStep:], n.Step[:])
	at[slotImport] = byte(copy(at[slotImport+1:slotNames], n.Import))
	put16(at[slotNames:], uint16(len(n.Tenant)))
	put16(at[slotNames+2:], uint16(len(n.Session)))
	copy(at[slotNames+4+copy(at[slotNames+4:], n.Tenant):], n.Session)
	word(at, slotWord).Store(1)
	return slot
}

// free reserves a free slot. It returns a negative number if there is none.
func (b *Box) free(n *deaths.CoreNote) int {
	if len(n.Tenant)+len(n.Session) > slotBytes-slotNames-4 {
		return -1
	}
	first := b.forRuns
	if n.Kind == deaths.CoreRun {
		first = 0
	}
	for i := first; i < len(b.taken); i++ {
		if !b.taken[i].Load() && b.taken[i].CompareAndSwap(false, true) {
			return i
		}
	}
	return -1
}

// At records the progress of the guest in a slot: the number of its host calls, the
// newest call, and the units burnt.
func (b *Box) At(slot int, calls, burnt uint64, newest string) {
	if slot < 0 || b.off.Load() {
		return
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if fault := recover(); fault != nil {
			b.fault(fault)
		}
	}()
	at := b.slot(slot)
	if newest != "" {
		at[slotImport] = byte(copy(at[slotImport+1:slotNames], newest))
	}
	word(at, slotCalls).Store(calls)
	word(at, slotBurnt).Store(burnt)
}

// Leave records that the work in a slot no longer holds a core.
func (b *Box) Leave(slot int) {
	if slot < 0 {
		return
	}
	b.store(headerBytes+slot*slotBytes+slotWord, 0)
	b.taken[slot].Store(false)
}

// Phase records what the server does from now on.
func (b *Box) Phase(p deaths.CorePhase) { b.store(atPhase, uint64(p)) }

// Alive records how many processes the system has killed for their memory so far. A later
// increase may be due to this process.
func (b *Box) Alive() {
	group, system := oomKills()
	b.store(atGroup, group)
	b.store(atSystem, system)
}

// store stores a word at an offset of the file.
func (b *Box) store(offset int, v uint64) {
	if b.off.Load() {
		return
	}
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if fault := recover(); fault != nil {
			b.fault(fault)
		}
	}()
	word(b.mem, offset).Store(v)
}

// Suspect replaces the suspects.
func (b *Box) Suspect(list []deaths.Suspect) {
	if b.off.Load() {
		return
	}
	b.suspects.Lock()
	defer b.suspects.Unlock()
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if fault := recover(); fault != nil {
			b.fault(fault)
		}
	}()
	other := 1 - int(word(b.mem, atInForce).Load())&1
	fillHalf(b.mem, b.slots, other, list)
	word(b.mem, atInForce).Store(uint64(other))
}

// fault stops recording: a failing disk must not end the server.
func (b *Box) fault(fault any) {
	if b.off.CompareAndSwap(false, true) {
		b.log.Error("can no longer record which work holds a core: a step that ends the server cannot be found", "file", filepath.Join(b.dir, File), "error", fmt.Sprint(fault))
	}
}

// Close records that the process ends cleanly. Nothing may use the box during the call;
// later calls record nothing.
func (b *Box) Close() error {
	var err error
	b.once.Do(func() {
		b.Phase(deaths.PhaseClosed)
		b.position.end()
		b.off.Store(true)
		if b.catch && b.mem != nil {
			err = debug.SetCrashOutput(nil, debug.CrashOptions{})
		}
		if b.mem != nil {
			err = errors.Join(err, unmapFile(b.mem))
		}
	})
	return err
}

func (b *Box) slot(i int) []byte { return b.mem[headerBytes+i*slotBytes:][:slotBytes] }

// word returns the word at an offset, which is a multiple of 8. mem must be aligned to 8
// bytes.
func word(mem []byte, offset int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&mem[offset : offset+8][0]))
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	put16      = binary.LittleEndian.PutUint16
	put32      = binary.LittleEndian.PutUint32
	put64      = binary.NativeEndian.PutUint64 // the byte order of stored words
)

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
