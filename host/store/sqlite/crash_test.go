package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// childVariable says what a child process does, and dirVariable names its data directory.
const (
	childVariable = "WEFT_TEST_SQLITE_CHILD"
	dirVariable   = "WEFT_TEST_SQLITE_DIR"
)

var children = map[string]func(dir string){
	"append": appendForever,
}

// child prepares a run of this test binary as a child process.
func child(t *testing.T, what, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+what, dirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

var (
	crashOne = host.SessionKey{Tenant: host.DefaultTenant, Session: "one"}
	crashTwo = host.SessionKey{Tenant: host.DefaultTenant, Session: "two"}
)

// crashBatch is the n-th batch of the history that the children write: entry n
// of two sessions, run n of a handler, and stream event n-1.
func crashBatch(epoch, n uint64) host.Batch {
	random := rand.New(rand.NewPCG(n, 0))
	data := bytes.Repeat([]byte{byte(n)}, 1+random.IntN(100_000)) // large enough for checkpoints
	r := host.Run{
		Tenant: crashOne.Tenant, HandlerID: "h", RunID: fmt.Sprint("run", n), SessionID: crashOne.Session,
		Workflow: "flow", Status: host.StatusCompleted, Started: int64(n), Steps: n,
	}
	return host.Batch{Epoch: epoch, Sessions: []host.SessionBatch{{
		Key: crashOne, First: n, Last: n, Data: data, WakeAt: int64(n),
		Runs: []host.Run{r}, Started: []string{r.RunID},
		Stream: []host.StreamRow{{HandlerID: "h", RunID: r.RunID, Events: []host.StreamEvent{
			{Seq: n - 1, RunID: r.RunID, Type: "Stop", Terminal: true, Body: abi.EmptyMap, Workflow: "flow"},
		}}},
	}, {
		Key: crashTwo, First: n, Last: n, Data: []byte{byte(n)}, WakeAt: host.WakeNever,
	}}}
}

// openToAppend opens the store in a child process, and returns the end of the history.
func openToAppend(ctx context.Context, dir string) (s *Store, epoch, last uint64, err error) {
	if s, err = Open(dir); err != nil {
		return nil, 0, 0, err
	}
	if epoch, err = s.Claim(ctx); err != nil {
		return nil, 0, 0, err
	}
	stored, err := s.LoadSession(ctx, crashOne)
	if errors.Is(err, host.ErrNotFound) {
		err = nil
	}
	return s, epoch, stored.Last, err
}

// appendForever continues the history until it is killed. It reports the number of each
// batch that is durable.
func appendForever(dir string) {
	ctx := context.Background()
	s, epoch, n, err := openToAppend(ctx, dir)
	for err == nil {
		n++
		if err = s.Append(ctx, crashBatch(epoch, n)); err == nil {
			_, err = fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKill kills a process in the middle of its appends. Everything that it has
// acknowledged is there, and at most the one batch in progress in addition.
func TestKill(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	acknowledged := uint64(0)
	for range 5 {
		acknowledged = killOnce(t, dir, acknowledged+uint64(random.IntN(100)))
		s := mustOpen(t, dir)
		last := checkHistory(t, s)
		if last < acknowledged || last > acknowledged+1 {
			t.Fatalf("%d batches are there, %d were acknowledged", last, acknowledged)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		acknowledged = last
	}
}

// killOnce lets a child append until it has acknowledged a batch after the given one,
// kills it, and returns the last batch that it acknowledged.
func killOnce(t *testing.T, dir string, until uint64) (acknowledged uint64) {
	t.Helper()
	cmd := child(t, "append", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if acknowledged, err = strconv.ParseUint(strings.TrimSpace(line), 10, 64); err != nil {
			t.Fatal(err)
		}
		if acknowledged > until {
			if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
		}
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != -1 {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return acknowledged
}

// checkHistory expects the store to hold a prefix of the children's history, and returns
// the length of the prefix.
func checkHistory(t *testing.T, s *Store) uint64 {
	t.Helper()
	last, err := readHistory(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// readHistory gives the length of the prefix of the children's history that a store
// holds, and an error if it holds anything else.
func readHistory(ctx context.Context, s *Store) (uint64, error) {
	var integrity string
	if err := s.read.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&integrity); err != nil {
		return 0, err
	}
	if integrity != "ok" {
		return 0, fmt.Errorf("integrity check: %s", integrity)
	}
	one, err := s.LoadSession(ctx, crashOne)
	if errors.Is(err, host.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	two, err := s.LoadSession(ctx, crashTwo)
	if err != nil {
		return 0, err
	}
	if two.Last != one.Last || uint64(len(one.Rows)) != one.Last || len(two.Rows) != len(one.Rows) || one.WakeAt != int64(one.Last) {
		return 0, fmt.Errorf("the sessions are at %d and %d with %d and %d rows", one.Last, two.Last, len(one.Rows), len(two.Rows))
	}
	for i, row := range one.Rows {
		if want := crashBatch(0, uint64(i+1)).Sessions[0].Data; !bytes.Equal(row, want) {
			return 0, fmt.Errorf("row %d of %d bytes is not the one that was written, of %d", i+1, len(row), len(want))
		}
	}
	h, err := s.Handler(ctx, crashOne.Tenant, "h")
	if err != nil {
		return 0, err
	}
	if h.Run.Steps != one.Last {
		return 0, fmt.Errorf("the latest run is %d, want %d", h.Run.Steps, one.Last)
	}
	last, first, err := s.StreamEnd(ctx, crashOne.Tenant, "h")
	if err != nil {
		return 0, err
	}
	if last != int64(one.Last)-1 || first != last {
		return 0, fmt.Errorf("the stream ends at %d (run from %d), want %d", last, first, one.Last-1)
	}
	return one.Last, nil
}
