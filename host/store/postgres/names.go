package postgres

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// Names come from clients and may have any bytes. PostgreSQL's text has no byte 00 and is
// valid UTF-8. So the bytes 00 and 01 are stored as 01 01 and 01 02, which keeps the
// order, and a byte that is not part of UTF-8 as 01 03 and two hexadecimal digits.

// text returns the stored form of a name.
func text(name string) string {
	plain := true
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] > 1 && name[i] < utf8.RuneSelf
	}
	if plain || strings.IndexByte(name, 0) < 0 && strings.IndexByte(name, 1) < 0 && utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case name[i] <= 1:
			b.WriteString("\x01" + string(rune(name[i]+1)))
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "\x01\x03%02x", name[i])
		default:
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}

// name returns the name of a stored form.
func name(stored string) (string, error) {
	if strings.IndexByte(stored, 1) < 0 {
		return stored, nil
	}
	var b strings.Builder
	for i := 0; i < len(stored); i++ {
		if stored[i] != 1 {
			b.WriteByte(stored[i])
			continue
		}
		var value byte
		rest := stored[i+1:]
		switch {
		case strings.HasPrefix(rest, "\x01"), strings.HasPrefix(rest, "\x02"):
			b.WriteByte(rest[0] - 1)
			i++
		case len(rest) >= 3 && rest[0] == 3:
			if _, err := fmt.Sscanf(rest[1:3], "%02x", &value); err != nil {
				return "", fmt.Errorf("the stored name %q: %w", stored, err)
			}
			b.WriteByte(value)
			i += 3
		default:
			return "", fmt.Errorf("the stored name %q is not one of weft's", stored)
		}
	}
	return b.String(), nil
}

// nameTo scans a name.
type nameTo struct{ to *string }

// ScanText implements [pgtype.TextScanner].
func (n nameTo) ScanText(v pgtype.Text) (err error) {
	*n.to, err = name(v.String)
	return err
}

// bytesTo scans bytes that are free text.
type bytesTo struct{ to *string }

// ScanBytes implements [pgtype.BytesScanner].
func (b bytesTo) ScanBytes(v []byte) error {
	*b.to = string(v)
	return nil
}

// someTo scans bytes of which an empty value stands for none.
type someTo struct{ to *[]byte }

// ScanBytes implements [pgtype.BytesScanner].
func (s someTo) ScanBytes(v []byte) error {
	*s.to = nil
	if len(v) > 0 {
		*s.to = append([]byte(nil), v...)
	}
	return nil
}

// texts returns the stored forms of names.
func texts(names []string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = text(n)
	}
	return list
}

// blob returns bytes that are never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
