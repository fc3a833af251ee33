//go:build unix

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weftrun/weft/host"
)

func init() { children["fill"] = appendUntilFull }

// appendUntilFull continues the history with files that cannot grow. It reports the
// number of the last batch that it could write, and checks that the store refuses further
// writes.
func appendUntilFull(dir string) {
	ctx := context.Background()
	s, epoch, n, err := openToAppend(ctx, dir)
	if err != nil {
		panic(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 3 << 20, Max: 3 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	for err == nil {
		n++
		err = s.Append(ctx, crashBatch(epoch, n))
	}
	again := s.Append(ctx, crashBatch(epoch, n))
	switch {
	case errors.Is(err, host.ErrNotCommitted), errors.Is(err, host.ErrFenced):
		panic(fmt.Sprintf("a write error in the COMMIT leaves the outcome open, yet Append = %v", err))
	case again == nil, errors.Is(again, host.ErrNotCommitted):
		panic(fmt.Sprintf("after an open outcome Append = %v", again))
	case s.SetMeta(ctx, "k", nil) == nil:
		panic("after an open outcome SetMeta succeeds")
	}
	fmt.Println(n - 1)
}

// TestOpenOutcome: when the disk fails in the COMMIT, Append leaves the outcome unknown
// and the store refuses further writes. Opening the store again shows the batches that
// were acknowledged.
func TestOpenOutcome(t *testing.T) {
	dir := t.TempDir()
	out, err := child(t, "fill", dir).Output()
	if err != nil {
		t.Fatalf("child: %v", err)
	}
	acknowledged, err := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || acknowledged == 0 {
		t.Fatalf("the child acknowledged %q", out)
	}
	last := checkHistory(t, mustOpen(t, dir))
	if last < acknowledged || last > acknowledged+1 {
		t.Errorf("%d batches are there, %d were acknowledged", last, acknowledged)
	}
}
