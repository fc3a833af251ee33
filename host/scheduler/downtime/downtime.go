// Package downtime keeps the times in which no server ran on a store: timeouts count only
// the time in which a server could serve.
//
// It must not depend on what is timed: it reads and writes marks in the store.
package downtime

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
)

// Names of the store's meta values.
const (
	metaUnclean = "unclean_boot" // non-empty while a server runs on the store
	metaAlive   = "alive_until"  // Unix nanoseconds, 8 bytes big endian
	metaDown    = "down"         // intervals in which no server ran: pairs like metaAlive
)

// maxDown bounds the intervals that are kept: a run that sleeps over more
// restarts than these has the oldest counted as serving time.
const maxDown = 4096

// Store keeps the marks.
type Store interface {
	Meta(ctx context.Context, key string) ([]byte, error)
	SetMeta(ctx context.Context, key string, value []byte) error
}

// interval is a time in which no server ran, in Unix nanoseconds.
type interval struct{ from, to int64 }

// Log has the times in which no server ran, oldest first. After Open it changes only by
// what it writes.
type Log struct {
	store Store
	down  []interval
}

// Open reads when the previous server ended, and records that one runs since boot.
// until is when the server of this process ended in whose place this one comes, 0 if there
// was none.
func Open(ctx context.Context, store Store, boot, until int64) (*Log, error) {
	l := &Log{store: store}
	alive, err := store.Meta(ctx, metaAlive)
	if err == nil || errors.Is(err, host.ErrNotFound) {
		err = l.read(ctx, alive, boot, until)
	}
	if err != nil {
		return nil, fmt.Errorf("read the times in which the server was down: %w", err)
	}
	if err := store.SetMeta(ctx, metaUnclean, []byte{1}); err != nil {
		return nil, fmt.Errorf("write the boot mark: %w", err)
	}
	return l, nil
}

// read reads the times in which no server ran, and adds the one that ends
// with this boot.
func (l *Log) read(ctx context.Context, alive []byte, boot, until int64) error {
	raw, err := l.store.Meta(ctx, metaDown)
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return err
	}
	for ; len(raw) >= 16; raw = raw[16:] {
		l.down = append(l.down, interval{int64(binary.BigEndian.Uint64(raw)), int64(binary.BigEndian.Uint64(raw[8:]))})
	}
	if len(alive) != 8 {
		return nil // the store's first server
	}
	from := max(int64(binary.BigEndian.Uint64(alive)), until)
	l.down = append(l.down, interval{from, boot})
	l.down = l.down[max(0, len(l.down)-maxDown):]
	out := make([]byte, 0, 16*len(l.down))
	for _, d := range l.down {
		out = binary.BigEndian.AppendUint64(out, uint64(d.from))
		out = binary.BigEndian.AppendUint64(out, uint64(d.to))
	}
	return l.store.SetMeta(ctx, metaDown, out)
}

// Since is how long no server ran after a time.
func (l *Log) Since(t int64) int64 {
	var sum int64
	for i := len(l.down) - 1; i >= 0 && l.down[i].to > t; i-- {
		sum += max(0, l.down[i].to-max(l.down[i].from, t))
	}
	return sum
}

// Alive marks that the server serves at a time.
func (l *Log) Alive(ctx context.Context, now int64) error {
	return l.store.SetMeta(ctx, metaAlive, binary.BigEndian.AppendUint64(nil, uint64(now)))
}

// Close marks that the server ended cleanly at a time.
func (l *Log) Close(ctx context.Context, now int64) error {
	if err := l.Alive(ctx, now); err != nil {
		return err
	}
	return l.store.SetMeta(ctx, metaUnclean, nil)
}
