package sqlite

import (
	"database/sql"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// blockedColumns returns the columns that say why a run is blocked.
func blockedColumns(r *host.Run) (code, message sql.NullString) {
	if r.Blocked == nil {
		return code, message
	}
	return sql.NullString{String: r.Blocked.Code, Valid: true}, sql.NullString{String: r.Blocked.Message, Valid: true}
}

// encodeParts encodes a run's result and what the run waits for, each if there is any.
func encodeParts(r *host.Run) (result, waiting []byte, err error) {
	if result, waiting, err = record.EncodeParts(r); err != nil {
		err = record.Refuse("%v", err)
	}
	return result, waiting, err
}

// encode encodes a value for a column.
func encode(v any) ([]byte, error) {
	data, err := record.Encode(v)
	if err != nil {
		return nil, record.Refuse("%v", err)
	}
	return data, nil
}
