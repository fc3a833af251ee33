package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
)

// A row is a version (1 byte), the CRC-32C of the rest (4 bytes, big endian), and a CBOR
// array of entries.
const (
	rowVersion = 1
	rowHeader  = 5
)

// ErrCorrupt is the error for a row that cannot be read. The row's session must not be
// used. It wraps [host.ErrUnreadable].
var ErrCorrupt = fmt.Errorf("corrupt journal row: %w", host.ErrUnreadable)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeRow(entries [][]byte) []byte {
	size := rowHeader + 9
	for _, e := range entries {
		size += len(e)
	}
	row := make([]byte, rowHeader, size)
	row[0] = rowVersion
	row = cbor.AppendHead(row, cbor.Array, uint64(len(entries)))
	for _, e := range entries {
		row = append(row, e...)
	}
	binary.BigEndian.PutUint32(row[1:], crc32.Checksum(row[rowHeader:], castagnoli))
	return row
}

// CheckRow verifies a row and returns the CBOR array of its entries, which shares memory
// with the row.
//
// # Errors
//
// [ErrCorrupt]; [host.ErrNewer].
func CheckRow(row []byte) ([]byte, error) {
	if len(row) < rowHeader {
		return nil, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(row))
	}
	if row[0] != rowVersion {
		return nil, fmt.Errorf("journal row has format %d, this weft reads %d: %w", row[0], rowVersion, host.ErrNewer)
	}
	if want, got := binary.BigEndian.Uint32(row[1:]), crc32.Checksum(row[rowHeader:], castagnoli); want != got {
		return nil, fmt.Errorf("%w: checksum %08x instead of %08x", ErrCorrupt, got, want)
	}
	return row[rowHeader:], nil
}

// historyPage is the number of rows that History reads at once.
const historyPage = 64

// History reads a session's entries in order, until decode wants no more. It begins at
// the entry from which the state at a position can be folded. Entries that are not
// durable are not read.
//
// # Errors
//
// Those of Load.
func (j *Journal) History(ctx context.Context, key host.SessionKey, position uint64, decode func(array []byte) (more bool, err error)) error {
	for after := uint64(0); ; {
		rows, err := j.cfg.Store.History(ctx, key, position, after, historyPage)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := 0; i < len(rows); i++ {
			row := rows[i]
			array, err := CheckRow(row.Data)
			if errors.Is(err, ErrCorrupt) {
				if rows, err = j.rereadHistory(ctx, key, position, after); err != nil {
					return err
				}
				if len(rows) == 0 {
					return nil // the session was deleted meanwhile
				}
				i, row = 0, rows[0]
				array, err = CheckRow(row.Data)
			}
			more := false
			if err == nil {
				more, err = decode(array)
			}
			if err != nil {
				return fmt.Errorf("session %q, journal row of entry %d: %w", key.Session, row.First, err)
			}
			if !more {
				return nil
			}
			after = row.First
		}
	}
}

// rereadAfter is the delay before rows with a wrong checksum are read again.
const rereadAfter = 100 * time.Millisecond

// reread reads rows again after one had a wrong checksum. A failing disk may return zeros
// for data that it has, so only rows that are wrong twice count as damaged.
func (j *Journal) reread(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	if err := beforeReread(ctx); err != nil {
		return host.StoredSession{}, err
	}
	return j.cfg.Store.Reread(ctx, key)
}

// rereadHistory is reread for the rows of a history.
func (j *Journal) rereadHistory(ctx context.Context, key host.SessionKey, position, after uint64) ([]host.JournalRow, error) {
	if err := beforeReread(ctx); err != nil {
		return nil, err
	}
	return j.cfg.Store.RereadHistory(ctx, key, position, after, historyPage)
}

func beforeReread(ctx context.Context) error {
	wait := time.NewTimer(rereadAfter)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return nil
	}
}

// checkRows verifies rows like [CheckRow].
func checkRows(key host.SessionKey, rows [][]byte) (arrays [][]byte, err error) {
	for i, row := range rows {
		array, err := CheckRow(row)
		if err != nil {
			return nil, fmt.Errorf("session %q, journal row %d: %w", key.Session, i, err)
		}
		arrays = append(arrays, array)
	}
	return arrays, nil
}

// Load reads a session's entries in order, from its newest snapshot on. It calls decode
// with the array of each row, and returns the position of the last entry.
//
// # Errors
//
// [host.ErrNotFound]; [ErrCorrupt]; [host.ErrNewer]; the errors of decode.
func (j *Journal) Load(ctx context.Context, key host.SessionKey, decode func(array []byte) error) (last uint64, err error) {
	stored, err := j.cfg.Store.LoadSession(ctx, key)
	if err != nil {
		return 0, err
	}
	arrays, err := checkRows(key, stored.Rows)
	if errors.Is(err, ErrCorrupt) {
		if stored, err = j.reread(ctx, key); err != nil {
			return 0, err
		}
		arrays, err = checkRows(key, stored.Rows)
	}
	if err != nil {
		return 0, err
	}
	for i, array := range arrays {
		if err := decode(array); err != nil {
			return 0, fmt.Errorf("session %q, journal row %d: %w", key.Session, i, err)
		}
	}
	return stored.Last, nil
}
