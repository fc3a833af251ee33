package sqlite

import (
	"database/sql"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// blockedColumns returns the columns that say why a run is blocked.
func blockedColumns(r *host.Run) (code, message sql.NullString) {
	if r.Blocked == nil {
		return code, message
	}
	return sql.NullString{String: r.Blocked.Code, Valid: true}, sql.NullString{String: r.Blocked.Message, Valid: true}
}

// The column of what a run waits for also holds other data, marked by reasons of their
// own: the events in the run's inbox, and the step that failed, with the number of its
// attempts in the place of the time. A failed run waits for nothing.
const (
	reasonKept   = "kept"
	reasonFailed = "failed"
)

// decodeWaiting decodes the column of what a run waits for and keeps.
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

// encodeParts encodes a run's result and what the run waits for, each if there is any.
func encodeParts(r *host.Run) (result, waiting []byte, err error) {
	if r.Result != nil {
		result, err = encode(r.Result)
	}
	all := slices.Clip(r.WaitingFor)
	for _, k := range r.Kept {
		all = append(all, host.Waiting{Reason: reasonKept, Type: k.Type, Step: k.Step})
	}
	if r.ErrorStep != "" {
		all = append(all, host.Waiting{Reason: reasonFailed, Step: r.ErrorStep, Since: int64(r.ErrorAttempt)})
	}
	if err == nil && len(all) > 0 {
		waiting, err = encode(all)
	}
	return result, waiting, err
}

// encode encodes a value for a column. It refuses a value that could not be decoded
// again, while the writer can still get the error.
func encode(v any) ([]byte, error) {
	data, err := abi.Marshal(v)
	if err != nil {
		return nil, refuse("a record cannot be encoded: %v", err)
	}
	if len(data) > abi.MaxRecord {
		return nil, refuse("a record of %d bytes is longer than %d", len(data), abi.MaxRecord)
	}
	return data, nil
}
