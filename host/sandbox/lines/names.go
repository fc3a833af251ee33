package lines

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
)

// names.go reads the file names of a table.

// nameHits reads the names of the files in which something was found. A place whose file
// has no name becomes the zero Place.
func (u *unit) nameHits() {
	for _, h := range u.hits {
		var name string
		if u.version == 5 {
			name = u.file5(h.file)
		} else {
			name = u.file(h.file)
		}
		if u.places[h.offset].File = name; name == "" {
			u.places[h.offset].Line = 0
		}
	}
}

// file returns the name of a file by its number, counted from 1, up to version 4.
func (u *unit) file(number uint64) string {
	r := u.names
	var directories []string
	for len(r.b) > 0 && r.b[0] != 0 {
		directories = append(directories, r.text())
	}
	r.fixed(1)
	for n := uint64(1); len(r.b) > 0 && r.b[0] != 0 && r.ok(); n++ {
		name, directory := r.text(), r.uleb()
		r.uleb() // modification time
		r.uleb() // length
		if n != number || !r.ok() {
			continue
		}
		if directory > 0 && directory <= uint64(len(directories)) {
			return join(directories[directory-1], name)
		}
		return join("", name)
	}
	return ""
}

// file5 returns the name of a file by its number, counted from 0, in version 5.
func (u *unit) file5(number uint64) string {
	r, directories := u.names, u.names
	if u.entries(&r, math.MaxUint64) == nil {
		return ""
	}
	e := u.entries(&r, number) // the files follow the directories
	if e == nil || !e.found {
		return ""
	}
	if d := u.entries(&directories, e.directory); d != nil {
		return join(d.name, e.name)
	}
	return join("", e.name)
}

// entry is a directory or a file of version 5.
type entry struct {
	name      string
	directory uint64
	found     bool
}

// Content types and forms of version 5's directory and file entries.
const (
	contentPath      = 1
	contentDirectory = 2

	formData2   = 0x05
	formData4   = 0x06
	formData8   = 0x07
	formString  = 0x08
	formBlock   = 0x09
	formData1   = 0x0b
	formStrp    = 0x0e
	formUdata   = 0x0f
	formData16  = 0x1e
	formLineStr = 0x1f
)

// entries reads a list of entries, and returns the entry with the given number, which may
// be empty. It returns nil if the list is invalid.
func (u *unit) entries(r *reader, number uint64) *entry {
	type field struct{ content, form uint64 }
	fields := make([]field, r.fixed(1))
	for i := range fields {
		fields[i] = field{r.uleb(), r.uleb()}
	}
	count := r.uleb()
	if !r.ok() || count > uint64(len(r.b)) || count > 0 && len(fields) == 0 {
		return nil // each entry takes at least one byte
	}
	e := &entry{}
	for n := range count {
		for _, f := range fields {
			text, value := u.value(r, f.form, n == number)
			if n != number {
				continue
			}
			switch e.found = true; f.content {
			case contentPath:
				e.name = text
			case contentDirectory:
				e.directory = value
			}
		}
		if !r.ok() {
			return nil
		}
	}
	return e
}

// value reads a value of a form. It reads the value's text only if wanted.
func (u *unit) value(r *reader, form uint64, wanted bool) (text string, value uint64) {
	switch form {
	case formString:
		text = r.text()
	case formStrp, formLineStr:
		at := r.fixed(4)
		if wanted {
			table := u.tables[".debug_str"]
			if form == formLineStr {
				table = u.tables[".debug_line_str"]
			}
			s := reader{b: table[min(at, uint64(len(table))):]}
			text = s.text()
		}
	case formData1:
		value = r.fixed(1)
	case formData2:
		value = r.fixed(2)
	case formData4:
		value = r.fixed(4)
	case formData8:
		value = r.fixed(8)
	case formData16:
		r.take(16)
	case formUdata:
		value = r.uleb()
	case formBlock:
		r.take(r.uleb())
	default:
		r.fail()
	}
	return text, value
}

// join joins a path, which need not be a path of this machine.
func join(directory, name string) string {
	if directory != "" && !strings.HasPrefix(name, "/") {
		name = directory + "/" + name
	}
	return strings.ToValidUTF8(name, "?")
}

// reader reads little-endian values. Beyond the end it returns zeros and sets ok to
// false.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) ok() bool { return !r.failed }

func (r *reader) fail() { r.b, r.failed = nil, true }

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

// fixed reads a number of the given length in bytes, at most 8.
func (r *reader) fixed(bytes int) uint64 {
	var whole [8]byte
	copy(whole[:], r.take(uint64(bytes)))
	return binary.LittleEndian.Uint64(whole[:])
}

func (r *reader) uleb() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) sleb() int64 {
	var v int64
	for shift := 0; len(r.b) > 0 && shift < 64; shift += 7 {
		b := r.b[0]
		r.b = r.b[1:]
		v |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	r.fail()
	return 0
}

// text reads a zero-terminated text of at most maxName bytes.
func (r *reader) text() string {
	end := bytes.IndexByte(r.b, 0)
	if end < 0 || end > maxName {
		r.fail()
		return ""
	}
	text := string(r.b[:end])
	r.b = r.b[end+1:]
	return text
}
