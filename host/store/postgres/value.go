package postgres

import (
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weftrun/weft/host/store/record"
)

// toColumn returns the stored form of a value as [record.Kind] describes it.
func toColumn(c *record.Column, value any) any {
	if v, some := value.(string); some {
		if c.Kind == record.Text {
			return []byte(v)
		}
		return text(v)
	}
	return value
}

// valueOf scans a column of a copy.
type valueOf struct {
	column *record.Column
	to     *any
}

// ScanInt64 implements [pgtype.Int64Scanner].
func (v valueOf) ScanInt64(n pgtype.Int8) error {
	*v.to = nil
	if n.Valid {
		*v.to = n.Int64
	}
	return nil
}

// ScanBool implements [pgtype.BoolScanner].
func (v valueOf) ScanBool(b pgtype.Bool) error {
	*v.to = b.Bool
	return nil
}

// ScanBytes implements [pgtype.BytesScanner]. Columns of text come as bytes, too.
func (v valueOf) ScanBytes(b []byte) (err error) {
	switch {
	case b == nil || len(b) == 0 && v.column.Null && v.column.Kind == record.Bytes:
		*v.to = nil
	case v.column.Kind == record.Name:
		*v.to, err = name(string(b))
	case v.column.Kind == record.Text:
		*v.to = string(b)
	default:
		*v.to = append([]byte{}, b...)
	}
	return err
}
