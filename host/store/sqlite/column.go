package sqlite

import (
	"database/sql"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// blockedColumns are the columns that say why a run cannot go on.
func blockedColumns(r *host.Run) (code, message sql.NullString) {
	if r.Blocked == nil {
		return code, message
	}
	return sql.NullString{String: r.Blocked.Code, Valid: true}, sql.NullString{String: r.Blocked.Message, Valid: true}
}

// encodeParts encodes a run's result, if it has one, and what it waits for, if it
// does.
func encodeParts(r *host.Run) (result, waiting []byte, err error) {
	if r.Result != nil {
		result, err = encode(r.Result)
	}
	if err == nil && len(r.WaitingFor) > 0 {
		waiting, err = encode(r.WaitingFor)
	}
	return result, waiting, err
}

// encode encodes a value for a column. What could not be decoded again is
// refused now, while its writer can still be told.
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
