package record

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Kind is the type of a column's values.
type Kind uint8

// Kinds of columns.
const (
	Int   Kind = iota // int64
	Bool              // bool
	Name              // string of any bytes that the store compares and sorts
	Text              // string of any bytes
	Bytes             // []byte, never nil
)

// Column is a column of a table. The value nil stands for NULL. An empty value of a column
// of bytes that may be NULL counts as NULL.
type Column struct {
	Name string
	Kind Kind
	Null bool // may be NULL
}

// Table is a table as all stores on databases have it. A store may have further columns,
// which follow from these.
type Table struct {
	Name    string
	Columns []Column
	// Key is how many of the first columns identify a row and order the table.
	Key int
	// Numbered is set if the key is an id that only orders the rows. No other row refers
	// to the id, and a copy may have other ids.
	Numbered bool
}

// Source is the content of a store at one moment. Only one goroutine may use a Source.
type Source interface {
	// Count returns the number of rows of a table.
	Count(ctx context.Context, t *Table) (int64, error)
	// Rows passes the rows of a table whose keys are greater than after, in the order of
	// the keys. after nil: all rows. The callback owns the row, and its error ends the
	// call. The callback must not call the source.
	Rows(ctx context.Context, t *Table, after []any, each func(row []any) error) error
}

// Tables are the tables with the content of a store, each after the tables that its rows
// refer to. What a store can rebuild from these, and who owns the store, is not among them.
var Tables = []*Table{
	table("meta", 1, "key name, value bytes"),
	table("tenants", 1, "name name, created int, deleting bool"),
	table("keys", 1, "id name, tenant name, role name, name name, prefix name, hash bytes, previous bytes, previous_prefix name,"+
		"previous_until int, created int, expires int, last_used int, revoked int"),
	table("access_audit", 1, "id int, time int, who name, tenant name, act name, target name, detail text, outcome name"),
	table("resources", 2, "tenant name, name name, definition bytes, key_id name, sealed bytes, created int, updated int"),
	table("resource_use", 3, "tenant name, resource name, workflow name, calls int, failed int, sent int, received int,"+
		"input_tokens int, output_tokens int"),
	table("modules", 1, "digest name, rewritten name, image_hash name, manifest bytes?, imports bytes"),
	table("module_bytes", 1, "digest name, bytes bytes"),
	table("plugins", 3, "tenant name, name name, version int, workflow name, digest name, size int, created int"),
	table("compositions", 3, "tenant name, name name, version int, digest name, created int, record bytes"),
	table("composition_modules", 4, "tenant name, name name, version int, place int, module name"),
	table("versions", 1, "id int, digest name"),
	table("released", 1, "digest name"),
	table("released_compositions", 1, "digest name, tenant name, name name, version int, created int, record bytes"),
	table("released_modules", 2, "digest name, place int, module name"),
	table("sessions", 1, "id int, tenant name, session name, last int, wake_at int?, private bool, snapshot int, bytes int, state int,"+
		"created int, updated int, unlisted int"),
	table("session_versions", 2, "sid int, version int, last int"),
	table("journal", 2, "sid int, first int, snapshot int?, data bytes"),
	table("handlers", 1, "id int, tenant name, handler name, sid int, first_seq int"),
	numbered(table("runs", 1, "id int, hid int, sid int, latest bool, tenant name, handler name, run name, session name, workflow name,"+
		"version name, status name, started int, updated int, completed int, paused bool, blocked_code name?, blocked_message text?,"+
		"steps int, fuel int, error text, error_code name, waiting bytes?, result bytes?, phase name, parent name, parent_step name,"+
		"forked_from name, forked_at int, retried_from name")),
	table("stream", 2, "hid int, last_seq int, first_seq int, run name, events bytes"),
	table("repeats", 3, "tenant name, route name, key name, hash name, run name, made int"),
	table("spent", 2, "tenant name, month int, runs int, fuel int, log_bytes int"),
	table("kv_spaces", 1, "id int, tenant name, resource name, made int, last int, keys int, bytes int"),
	table("kv", 2, "space int, key text, version int, value bytes"),
}

// table parses a table's columns. A question mark marks a column that may be NULL.
func table(name string, key int, columns string) *Table {
	kinds := map[string]Kind{"int": Int, "bool": Bool, "name": Name, "text": Text, "bytes": Bytes}
	t := &Table{Name: name, Key: key}
	for definition := range strings.SplitSeq(columns, ",") {
		column, kind, _ := strings.Cut(strings.TrimSpace(definition), " ")
		kind, null := strings.CutSuffix(kind, "?")
		t.Columns = append(t.Columns, Column{column, kinds[kind], null})
	}
	return t
}

func numbered(t *Table) *Table {
	t.Numbered = true
	return t
}

// Names returns the names of columns, separated by commas.
func Names(columns []Column) string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
	}
	return strings.Join(names, ", ")
}

// Tags of encoded values.
const (
	tagNull byte = iota
	tagInt
	tagFalse
	tagTrue
	tagString
	tagBytes
)

// AppendRow appends the encoding of a row, or of the beginning of a row.
func AppendRow(to []byte, row []any) []byte {
	for _, value := range row {
		switch v := value.(type) {
		case int64:
			to = binary.BigEndian.AppendUint64(append(to, tagInt), uint64(v))
		case bool:
			if v {
				to = append(to, tagTrue)
			} else {
				to = append(to, tagFalse)
			}
		case string:
			to = append(binary.BigEndian.AppendUint64(append(to, tagString), uint64(len(v))), v...)
		case []byte:
			to = append(binary.BigEndian.AppendUint64(append(to, tagBytes), uint64(len(v))), v...)
		default:
			to = append(to, tagNull)
		}
	}
	return to
}

var errRow = errors.New("an encoded row is not valid")

// ParseRow returns the row of an encoding.
func ParseRow(data []byte) (row []any, err error) {
	for len(data) > 0 {
		tag := data[0]
		data = data[1:]
		switch tag {
		case tagNull:
			row = append(row, nil)
			continue
		case tagFalse, tagTrue:
			row = append(row, tag == tagTrue)
			continue
		}
		if len(data) < 8 {
			return nil, errRow
		}
		n := binary.BigEndian.Uint64(data)
		data = data[8:]
		switch {
		case tag == tagInt:
			row = append(row, int64(n))
			continue
		case tag > tagBytes || n > uint64(len(data)):
			return nil, fmt.Errorf("%w: tag %d of %d bytes", errRow, tag, n)
		case tag == tagString:
			row = append(row, string(data[:n]))
		default:
			row = append(row, append([]byte{}, data[:n]...))
		}
		data = data[n:]
	}
	return row, nil
}
