// Package record has what the stores on databases share: SQLite and PostgreSQL have the
// same columns. It encodes what is kept in columns of bytes, pages lists, and follows the
// notes of runs whose words are not in the index yet.
package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// The column of what a run waits for also holds other data, marked by reasons of their
// own: the events in the run's inbox, and the step that failed, with the number of its
// attempts in the place of the time. A failed run waits for nothing.
const (
	reasonKept   = "kept"
	reasonFailed = "failed"
)

// DecodeParts decodes the columns of a run's result and of what the run waits for, each
// nil if there is none. A part that does not decode marks the run as unreadable: the rest
// of the run, and the other runs of a listing, are still useful.
func DecodeParts(r *host.Run, result, waiting []byte) {
	if waiting != nil {
		if err := decodeWaiting(waiting, r); err != nil {
			unreadable(r, "what it waits for", err)
		}
	}
	if result != nil {
		r.Result = &host.StreamEvent{}
		if err := abi.Unmarshal(result, r.Result); err != nil {
			unreadable(r, "its result", err)
		}
	}
}

func decodeWaiting(data []byte, r *host.Run) error {
	if err := abi.Unmarshal(data, &r.WaitingFor); err != nil {
		return err
	}
	r.WaitingFor = slices.DeleteFunc(r.WaitingFor, func(w host.Waiting) bool {
		switch w.Reason {
		case reasonKept:
			r.Kept = append(r.Kept, host.Kept{Type: w.Type, Step: w.Step})
		case reasonFailed:
			r.ErrorStep, r.ErrorAttempt = w.Step, uint64(w.Since)
		default:
			return false
		}
		return true
	})
	if len(r.WaitingFor) == 0 {
		r.WaitingFor = nil
	}
	return nil
}

func unreadable(r *host.Run, part string, err error) {
	r.Result, r.WaitingFor, r.Kept = nil, nil, nil
	r.Blocked = &host.Blocked{Code: host.BlockedUnreadable,
		Message: fmt.Sprintf("the stored record is damaged: %s cannot be read (%v)", part, err)}
}

// EncodeParts encodes a run's result and what the run waits for, each if there is any.
func EncodeParts(r *host.Run) (result, waiting []byte, err error) {
	if r.Result != nil {
		result, err = Encode(r.Result)
	}
	all := slices.Clip(r.WaitingFor)
	for _, k := range r.Kept {
		all = append(all, host.Waiting{Reason: reasonKept, Type: k.Type, Step: k.Step})
	}
	if r.ErrorStep != "" {
		all = append(all, host.Waiting{Reason: reasonFailed, Step: r.ErrorStep, Since: int64(r.ErrorAttempt)})
	}
	if err == nil && len(all) > 0 {
		waiting, err = Encode(all)
	}
	return result, waiting, err
}

// Encode encodes a value for a column. It refuses a value that could not be decoded
// again, while the writer can still get the error.
func Encode(v any) ([]byte, error) {
	data, err := abi.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a record cannot be encoded: %w", err)
	}
	if len(data) > abi.MaxRecord {
		return nil, fmt.Errorf("a record of %d bytes is longer than %d", len(data), abi.MaxRecord)
	}
	return data, nil
}

// Bounds of one row of the stream table. Readers always read whole rows. A single event
// may be longer.
const (
	rowEvents = 256
	rowBytes  = 256 << 10
)

// RowLength returns how many of the events, at least one, go into one row.
func RowLength(events []host.StreamEvent) int {
	bytes := 0
	for i := range events {
		bytes += len(events[i].Body)
		if i == rowEvents || i > 0 && bytes > rowBytes {
			return i
		}
	}
	return len(events)
}

// DecodeEvents appends the events of a row with numbers above after.
func DecodeEvents(to []host.StreamEvent, data []byte, after int64) ([]host.StreamEvent, error) {
	var row []host.StreamEvent
	if err := abi.Unmarshal(data, &row); err != nil {
		return nil, err
	}
	for len(row) > 0 && int64(row[0].Seq) <= after {
		row = row[1:]
	}
	return append(to, row...), nil
}

// Page returns how many rows a list may give, whatever its query asks for.
func Page(limit int) int { return min(max(limit, 1), host.MaxListed) }

// Cut makes a page of rows. The rows were read up to one beyond the page, and more says
// whether that one exists.
func Cut[T any](rows []T, limit int) (_ []T, more bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

// CompareStart orders runs by their start, then by their handler.
func CompareStart(a, b *host.Run) int {
	if a.Started != b.Started {
		if a.Started < b.Started {
			return -1
		}
		return 1
	}
	return strings.Compare(a.HandlerID, b.HandlerID)
}

// CutRows puts rows of several walks into order, and makes a page of them. The rows were
// read up to one beyond the page: behind it or, with back, before it.
func CutRows(rows []host.RunRow, limit int, back bool) (_ []host.RunRow, more bool) {
	slices.SortFunc(rows, func(a, b host.RunRow) int {
		return -cmp.Or(cmp.Compare(a.Started, b.Started), strings.Compare(a.RunID, b.RunID))
	})
	if len(rows) <= limit {
		return rows, false
	}
	if back {
		return rows[len(rows)-limit:], true
	}
	return rows[:limit], true
}

// Texts returns values as texts.
func Texts[T ~string](values []T) []string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return texts
}

// Distinct returns a sorted copy without repetitions.
func Distinct[T ~string](values []T) []T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}
