package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/sqlite/faultdisk"
)

// faultSeeds is how many seeds a run of the tests plays. Under the race detector it plays
// a third.
const faultSeeds = 30

// TestFaults plays histories of appends on a disk that fails: writes, syncs and
// truncations with EIO and ENOSPC, short writes, once or for good, torn writes and
// sectors in another order, power losses and deaths of the process, at any operation,
// while the store opens too. After each of them, the store that is opened again must
// satisfy:
//
//   - every acknowledged batch is there, whole and in its place;
//   - of the other batches at most the one with an unknown outcome is there, whole;
//   - a batch that was certainly not written is written when it is tried again;
//   - after an unknown outcome the store accepts nothing more.
//
// WEFT_SEED=n plays one seed again, and WEFT_SEEDS=n plays n others.
func TestFaults(t *testing.T) {
	var sum faultSum
	eachSeed(t, faultSeeds, func(t *testing.T, seed uint64) {
		if err := playFaults(t, seed, "", &sum); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%+v", sum)
	if testing.Short() || os.Getenv("WEFT_SEED") != "" {
		return // a few histories need not have every fault
	}
	for name, n := range map[string]int{
		"batches": sum.Batches, "surely not written": sum.Refused, "open outcomes": sum.Open, "of them written": sum.Written,
		"power losses": sum.Losses, "deaths": sum.Deaths, "failures while opening": sum.Openings, "checkpoints that failed": sum.Late,
	} {
		if n == 0 {
			t.Errorf("the histories have no %s", name)
		}
	}
}

// TestFaultsAreSeen: a store that syncs less loses acknowledged batches, and the test
// above notices.
func TestFaultsAreSeen(t *testing.T) {
	suite.NotShort(t, "looks for what a weaker store loses")
	seeds := 12
	if few {
		seeds = 4
	}
	for _, weaker := range []string{"PRAGMA synchronous=NORMAL", "PRAGMA synchronous=OFF"} {
		noticed := 0
		for seed := range uint64(seeds) {
			if playFaults(t, seed, weaker, &faultSum{}) != nil {
				noticed++
			}
		}
		if noticed == 0 {
			t.Errorf("nothing is lost with %s", weaker)
		}
		t.Logf("%s: lost in %d of %d histories", weaker, noticed, seeds)
	}
}

// eachSeed plays the seeds that the environment asks for.
func eachSeed(t *testing.T, count int, play func(t *testing.T, seed uint64)) {
	t.Helper()
	first := uint64(1)
	switch {
	case testing.Short():
		count /= 10
	case few:
		count /= 3
	}
	if n, err := strconv.ParseUint(os.Getenv("WEFT_SEED"), 10, 64); err == nil {
		first, count = n, 1
	} else if n, err := strconv.Atoi(os.Getenv("WEFT_SEEDS")); err == nil {
		first, count = uint64(time.Now().UnixNano()), n
	}
	for seed := first; seed < first+uint64(count); seed++ {
		if play(t, seed); t.Failed() {
			t.Fatalf("WEFT_SEED=%d plays it again", seed)
		}
	}
}

// faultSum counts the outcomes of the histories.
type faultSum struct{ Batches, Refused, Open, Written, Losses, Deaths, Openings, Late int }

// faultHistory is one history.
type faultHistory struct {
	dir    string
	disk   *faultdisk.Disk
	rng    *rand.Rand
	weaker string // a pragma of the writing connection; "": none
	sum    *faultSum

	s     *Store
	epoch uint64
	acked uint64 // the last acknowledged batch
	tried uint64 // the last batch whose outcome may be unknown
}

// playFaults plays one history. The error says which condition failed.
func playFaults(t *testing.T, seed uint64, weaker string, sum *faultSum) error {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	h := &faultHistory{dir: dir, disk: faultdisk.New(t, dir, rng), rng: rng, weaker: weaker, sum: sum}
	for range 8 {
		if err := h.life(t); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	return nil
}

// life is the life of one process, from opening the store to a failure, and the check of
// what it leaves.
func (h *faultHistory) life(t *testing.T) (err error) {
	if h.rng.IntN(3) == 0 {
		h.disk.Fail(h.chooseFault(12))
	}
	if err := h.open(t); err != nil {
		h.sum.Openings++
		return h.end(t)
	}
	if h.rng.IntN(4) > 0 {
		h.disk.Fail(h.chooseFault(120))
	}
	for range 10 + h.rng.IntN(25) {
		if goOn, err := h.append(t); err != nil {
			return err
		} else if !goOn {
			break
		}
	}
	return h.end(t)
}

func (h *faultHistory) chooseFault(most int) faultdisk.Fault {
	f := faultdisk.Fault{Op: faultdisk.Write, N: 1 + h.rng.IntN(most), Lasting: h.rng.IntN(2) == 0,
		Kind: []faultdisk.Kind{faultdisk.IOError, faultdisk.NoSpace, faultdisk.PowerCut, faultdisk.Short}[h.rng.IntN(4)]}
	switch h.rng.IntN(5) {
	case 0, 1:
		f.Op, f.N = faultdisk.Sync, 1+h.rng.IntN(max(1, most/4))
	case 2:
		f.Op, f.N = faultdisk.Truncate, 1+h.rng.IntN(2)
	}
	return f
}

// open opens the store, becomes its owner, and has it make checkpoints often.
func (h *faultHistory) open(t *testing.T) (err error) {
	if h.s, err = Open(h.dir); err != nil {
		h.s = nil
		return err
	}
	for _, pragma := range []string{"PRAGMA wal_autocheckpoint=60", h.weaker} {
		if _, err := h.s.conn.ExecContext(t.Context(), pragma); err != nil {
			return err
		}
	}
	h.epoch, err = h.s.Claim(t.Context())
	return err
}

// append appends the next batch; false if the store is of no use any more.
func (h *faultHistory) append(t *testing.T) (goOn bool, err error) {
	n := h.acked + 1
	err = h.s.Append(t.Context(), crashBatch(h.epoch, n))
	if errors.Is(err, host.ErrNotCommitted) {
		h.sum.Refused++
		h.disk.Heal()
		err = h.s.Append(t.Context(), crashBatch(h.epoch, n)) // refused for good if it was written
	}
	switch {
	case err == nil:
		h.acked, h.tried = n, n
		h.sum.Batches++
		return true, nil
	case errors.Is(err, host.ErrFenced):
		return false, fmt.Errorf("batch %d: %w", n, err)
	case errors.Is(err, host.ErrNotCommitted): // a new fault, after the power had gone
		return false, nil
	}
	h.tried = n
	h.sum.Open++
	again := h.s.Append(t.Context(), crashBatch(h.epoch, n))
	if again == nil || errors.Is(again, host.ErrNotCommitted) || h.s.SetMeta(t.Context(), "k", nil) == nil {
		return false, fmt.Errorf("after the open outcome of batch %d (%w) the store goes on: %w", n, err, again)
	}
	return false, nil
}

// end ends the process in one of many ways, and checks what the next one finds.
func (h *faultHistory) end(t *testing.T) error {
	switch h.rng.IntN(4) {
	case 0: // in order, if the disk lets it
		h.disk.Heal()
		h.close()
	case 1: // likewise, on a disk that still fails
		h.close()
		if h.disk.Heal() {
			h.sum.Late++
		}
	case 2:
		h.sum.Deaths++
		h.disk.Cut()
		h.close()
		h.disk.Revive()
	default:
		h.sum.Losses++
		h.disk.Cut()
		h.close()
		h.disk.Restore()
	}
	if h.rng.IntN(2) == 0 {
		h.disk.Cut() // which may have come before
		h.disk.Restore()
	} else {
		h.disk.Revive()
	}
	if h.rng.IntN(3) == 0 {
		h.disk.Evict()
	}
	return h.check(t)
}

func (h *faultHistory) close() {
	if h.s != nil {
		_ = h.s.Close() // which says what the disk says
		h.s = nil
	}
}

// check opens the store on a disk that works.
func (h *faultHistory) check(t *testing.T) error {
	s, err := Open(h.dir)
	if err != nil {
		return fmt.Errorf("with %d batches acknowledged the store does not open: %w", h.acked, err)
	}
	defer func() {
		if h.rng.IntN(2) == 0 { // it dies at once: the log stays
			h.disk.Cut()
		}
		_ = s.Close()
		h.disk.Revive()
	}()
	last, err := readHistory(t.Context(), s)
	if err != nil {
		return fmt.Errorf("with %d batches acknowledged: %w", h.acked, err)
	}
	if last < h.acked || last > max(h.acked, h.tried) {
		return fmt.Errorf("%d batches are there, %d were acknowledged, %d tried", last, h.acked, h.tried)
	}
	if last > h.acked {
		h.sum.Written++
	}
	h.acked, h.tried = last, last
	return nil
}
