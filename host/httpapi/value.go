package httpapi

import (
	"bytes"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// extraDepth is how much deeper than a value the request around it may nest:
// the body's object and an event's envelope.
const extraDepth = 2

// maxMembers bounds the fields of a request's own objects. Events are bounded
// by abi's limits.
const maxMembers = 64

// value is an item of a request body, still encoded. Bodies are taken apart in
// place and only the part that holds user data is transcoded, once: a body of
// many megabytes is never held as decoded values, and user data may nest as
// deep as they may anywhere else.
type value struct {
	raw  []byte // without white space around it, never empty
	cbor bool   // checked and canonical CBOR; else JSON that nobody has checked
	path string // from the body's top, for messages
	off  int    // of raw in the JSON text, for messages
	room *place // where the memory is taken that is needed to transcode it
}

// readValue reads a request's body: an object, where an empty or null body
// counts as {}.
func (s *Server) readValue(c echo.Context) (value, error) {
	body, err := readBody(c, s.cfg.MaxBody)
	if err != nil {
		return value{}, err
	}
	return readObject(c, body)
}

// readObject reads the object that a body has to be.
func readObject(c echo.Context, body []byte) (value, error) {
	v, err := parseBody(body, mediaType(c.Request().Header.Get("Content-Type")) == apiwire.TypeCBOR, placeOf(c))
	if err != nil {
		return value{}, err
	}
	if v.null() {
		v.raw = []byte("{}")
		v.cbor = false
	}
	if !v.object() {
		if _, err := v.canonical(); err != nil {
			return value{}, err
		}
		return value{}, invalid("The request body must be an object")
	}
	return v, nil
}

// parseBody makes the value of a whole body. Nothing at all is null.
func parseBody(body []byte, isCBOR bool, room *place) (value, error) {
	if isCBOR {
		if len(body) == 0 {
			return value{raw: abi.Null, cbor: true}, nil
		}
		need := transcoding(body, true)
		if err := room.grow(need); err != nil {
			return value{}, err
		}
		defer room.shrink(need)
		raw, err := abi.Canonical(body, abi.MaxValueDepth+extraDepth)
		v := value{raw: raw, cbor: true}
		if err != nil {
			return value{}, v.malformed(err)
		}
		return v, nil
	}
	v := jsonValue(body)
	v.room = room
	if len(v.raw) == 0 {
		v.raw = []byte("null")
	}
	return v, nil
}

// jsonValue makes the value of a JSON text; raw may come out empty.
func jsonValue(text []byte) value {
	start := skipSpace(text, 0)
	return value{raw: bytes.TrimRight(text[start:], jsonSpace), off: start}
}

func (v value) object() bool {
	if v.cbor {
		return cbor.Major(v.raw[0]) == cbor.Map
	}
	return v.raw[0] == '{'
}

func (v value) text() bool {
	if v.cbor {
		return cbor.Major(v.raw[0]) == cbor.Text
	}
	return v.raw[0] == '"'
}

func (v value) null() bool {
	if v.cbor {
		return v.raw[0] == abi.Null[0]
	}
	return string(v.raw) == "null"
}

// given reports whether a field says anything: absent (the zero value), null,
// "" and {} do not.
func (v value) given() bool {
	switch {
	case v.raw == nil, v.null():
		return false
	case v.text():
		return string(v.raw) != `""` || v.cbor && len(v.raw) > 1
	case v.object():
		m := v.members()
		_, _, any := m.next()
		return any || m.err != nil
	default:
		return true
	}
}

// canonical transcodes a value into canonical CBOR. Of a CBOR value it gives
// the very bytes of the body.
func (v value) canonical() (abi.Raw, error) {
	if v.cbor {
		if err := abi.CheckValue(v.raw, abi.MaxValueDepth); err != nil {
			return nil, v.malformed(err)
		}
		return v.raw, nil
	}
	need := transcoding(v.raw, false)
	if err := v.room.grow(need); err != nil {
		return nil, err
	}
	defer v.room.shrink(need)
	raw, err := abi.FromJSON(v.raw)
	if err != nil {
		return nil, v.malformed(err)
	}
	return raw, nil
}

// textOf gives the content of a text; what names the field otherwise.
func (v value) textOf() ([]byte, error) {
	if !v.text() {
		if _, err := v.canonical(); err != nil {
			return nil, err
		}
		return nil, invalid("'%s' must be a text", v.path)
	}
	raw, err := v.canonical()
	if err != nil {
		return nil, err
	}
	_, start := cbor.Head(raw, 0)
	return raw[start:], nil
}

// optionalText gives the text of a field, "" when it is not given.
func (v value) optionalText() (string, error) {
	if !v.given() {
		return "", nil
	}
	b, err := v.textOf()
	return string(b), err
}

// malformed is the answer to a value that cannot be read.
func (v value) malformed(err error) error {
	kind := "JSON"
	if v.cbor {
		kind = "CBOR"
	}
	var data *abi.DataError
	if !errors.As(err, &data) {
		return &host.Error{Code: host.CodeInvalidMessage, Message: "Invalid " + kind + " body", Cause: err}
	}
	at := *data
	at.Path = joinPath(v.path, data.Path)
	if at.Offset >= 0 {
		at.Offset += v.off
	}
	return &host.Error{Code: host.CodeInvalidMessage, Message: "Invalid " + kind + " body: " + at.Error(), Cause: err}
}

func joinPath(outer, inner string) string {
	switch {
	case outer == "":
		return inner
	case inner == "":
		return outer
	default:
		return outer + "." + inner
	}
}

// members iterates over the members of an object in their order.
type members struct {
	of   value
	pos  int
	left int // CBOR: pairs to come. JSON: -1 before the first, 0 at the end
	err  error
}

// members begins an iteration; v must be an object.
func (v value) members() members {
	if v.cbor {
		n, pos := cbor.Head(v.raw, 0)
		return members{of: v, pos: pos, left: int(n)}
	}
	return members{of: v, pos: 1, left: -1}
}

// next gives the next member. The name is valid until the call after it. At
// the end, and when the object is broken (err is set), ok is false.
func (m *members) next() (name []byte, v value, ok bool) {
	if m.left == 0 || m.err != nil {
		return nil, value{}, false
	}
	if m.of.cbor {
		return m.nextCBOR()
	}
	return m.nextJSON()
}

func (m *members) nextCBOR() (name []byte, v value, ok bool) {
	m.left--
	raw := m.of.raw
	n, start := cbor.Head(raw, m.pos)
	at := start + int(n)
	end := cbor.Skip(raw, at)
	m.pos = end
	return raw[start:at], value{raw: raw[at:end], cbor: true, path: m.of.path}, true
}

func (m *members) nextJSON() (name []byte, v value, ok bool) {
	raw := m.of.raw
	pos := skipSpace(raw, m.pos)
	first := m.left == -1
	m.left = 1
	switch {
	case pos >= len(raw):
		return m.broken(pos, "unexpected end of data")
	case raw[pos] == '}':
		m.left = 0
		if skipSpace(raw, pos+1) != len(raw) {
			return m.broken(pos+1, "trailing data")
		}
		return nil, value{}, false
	case !first && raw[pos] != ',':
		return m.broken(pos, "expected , or } in an object")
	case !first:
		pos = skipSpace(raw, pos+1)
	}
	name, pos, ok = m.key(pos)
	if !ok {
		return nil, value{}, false
	}
	if pos = skipSpace(raw, pos); pos >= len(raw) || raw[pos] != ':' {
		return m.broken(pos, "expected : after a key")
	}
	pos = skipSpace(raw, pos+1)
	end := jsonSkip(raw, pos)
	if end == pos {
		return m.broken(pos, "not a JSON value")
	}
	m.pos = end
	return name, value{raw: raw[pos:end], path: m.of.path, off: m.of.off + pos, room: m.of.room}, true
}

// key reads the JSON string at pos as a member's name.
func (m *members) key(pos int) (name []byte, end int, ok bool) {
	raw := m.of.raw
	if pos >= len(raw) || raw[pos] != '"' {
		m.broken(pos, "expected a key")
		return nil, 0, false
	}
	end = jsonSkip(raw, pos)
	if end < pos+2 || raw[end-1] != '"' {
		m.broken(len(raw), "unexpected end of data")
		return nil, 0, false
	}
	name = raw[pos+1 : end-1]
	if isPlain(name) {
		return name, end, true
	}
	// Escapes and what is not ASCII: let the strict reader judge.
	name, m.err = value{raw: raw[pos:end], path: m.of.path, off: m.of.off + pos, room: m.of.room}.textOf()
	return name, end, m.err == nil
}

// broken ends the iteration with an error at that position.
func (m *members) broken(pos int, reason string) ([]byte, value, bool) {
	m.err = m.of.malformed(&abi.DataError{Offset: min(pos, len(m.of.raw)), Reason: reason})
	return nil, value{}, false
}

// fields takes one of a request's own objects apart. Members that nobody knows
// are checked and left out.
func (v value) fields(known ...string) (map[string]value, error) {
	found := make(map[string]value, len(known))
	names := make(map[string]bool, len(known))
	m := v.members()
	for name, member, ok := m.next(); ok; name, member, ok = m.next() {
		key := string(name)
		member.path = joinPath(v.path, key)
		if names[key] {
			return nil, member.malformed(&abi.DataError{Offset: -1, Reason: "duplicate key"})
		}
		if names[key] = true; len(names) > maxMembers {
			return nil, invalid("The request has more than %d fields", maxMembers)
		}
		isKnown := false
		for _, k := range known {
			isKnown = isKnown || k == key
		}
		if isKnown {
			found[key] = member
			continue
		}
		if _, err := member.canonical(); err != nil {
			return nil, err
		}
	}
	return found, m.err
}
