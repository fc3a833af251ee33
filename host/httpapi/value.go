package httpapi

import (
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/abuse"
)

// extraDepth is how much deeper than a value the request around it may nest: the body's
// object and an event's envelope.
const extraDepth = 2

// value is an item of a request body. A body is transcoded once, as a whole, and its
// values stay encoded: a body of many megabytes is never held as decoded values.
type value struct {
	raw  abi.Raw // canonical CBOR; nil: absent
	path string  // path from the body's top, for messages
	cbor bool    // the body was CBOR, not JSON
	deep bool    // the body may nest deeper than a value
}

// readValue reads a request's body, which must be an object. An empty or null body counts
// as {}.
func (s *Server) readValue(c echo.Context) (value, error) {
	body, err := readBody(c, s.cfg.MaxBody)
	if err != nil {
		return value{}, err
	}
	return readObject(c, body)
}

// readInto reads a request's body into a struct of package apiwire.
func (s *Server) readInto(c echo.Context, dst any) error {
	v, err := s.readValue(c)
	if err != nil {
		return err
	}
	return v.into(dst)
}

// readObject reads a body that must be an object.
func readObject(c echo.Context, body []byte) (value, error) {
	v, err := parseBody(body, mediaType(c.Request().Header.Get("Content-Type")) == apiwire.TypeCBOR, placeOf(c))
	switch {
	case err != nil:
		return value{}, err
	case v.null():
		v.raw = abi.EmptyMap
	case !v.object():
		return value{}, invalid("The request body must be an object")
	}
	return v, nil
}

// parseBody returns the value of a whole body. An empty body is null. The memory needed
// for parsing is taken from room.
func parseBody(body []byte, isCBOR bool, room *abuse.Place) (value, error) {
	v := value{raw: abi.Null, cbor: isCBOR, deep: isCBOR}
	if skipSpace(body) == len(body) && (!isCBOR || len(body) == 0) {
		return v, nil
	}
	need := abuse.Transcoding(body, isCBOR)
	if err := room.Grow(need); err != nil {
		return value{}, err
	}
	defer room.Shrink(need)
	var err error
	if isCBOR {
		v.raw, err = abi.Canonical(body, abi.MaxValueDepth+extraDepth)
	} else {
		v, err = v.parse(body)
	}
	if err != nil {
		return value{}, v.malformed(err)
	}
	return v, nil
}

// parse returns the value of a JSON text that takes the place of v.
func (v value) parse(text []byte) (_ value, err error) {
	v.cbor = false
	if v.raw, err = abi.FromJSON(text); err != nil {
		v.deep = true // it may be well formed but too deep
		v.raw, err = abi.Limits{MaxDepth: abi.MaxValueDepth + extraDepth}.FromJSON(text)
	}
	return v, err
}

// skipSpace returns the offset of the first byte that is not white space.
func skipSpace(b []byte) int {
	for i, c := range b {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return i
		}
	}
	return len(b)
}

func (v value) object() bool { return v.is(cbor.Map) }
func (v value) text() bool   { return v.is(cbor.Text) }
func (v value) null() bool   { return v.raw == nil || v.raw[0] == abi.Null[0] }

func (v value) is(major byte) bool { return v.raw != nil && cbor.Major(v.raw[0]) == major }

// given reports whether a field has a value: absent, null, "" and {} are not values.
func (v value) given() bool { return !v.null() && (len(v.raw) > 1 || !v.text() && !v.object()) }

// canonical returns the encoded value, which nests no deeper than a value may.
func (v value) canonical() (abi.Raw, error) {
	if !v.deep {
		return v.raw, nil
	}
	if err := abi.CheckValue(v.raw, abi.MaxValueDepth); err != nil {
		var data *abi.DataError
		if errors.As(err, &data) {
			err = &abi.DataError{Path: data.Path, Offset: -1, Reason: data.Reason} // the offset would be relative to v
		}
		return nil, v.malformed(err)
	}
	return v.raw, nil
}

// textOf returns the content of a text. If the value is not a text, the error names the
// field.
func (v value) textOf() ([]byte, error) {
	if !v.text() {
		return nil, invalid("'%s' must be a text", v.path)
	}
	_, start := cbor.Head(v.raw, 0)
	return v.raw[start:], nil
}

// optionalText returns the text of a field, "" if it is not given.
func (v value) optionalText() (string, error) {
	if !v.given() {
		return "", nil
	}
	b, err := v.textOf()
	return string(b), err
}

// malformed returns the error for a value that cannot be read.
func (v value) malformed(err error) error {
	kind := "JSON"
	if v.cbor {
		kind = "CBOR"
	}
	message := "Invalid " + kind + " body"
	var data *abi.DataError
	if errors.As(err, &data) {
		at := *data
		at.Path = joinPath(v.path, data.Path)
		message += ": " + at.Error()
	}
	return &host.Error{Code: host.CodeInvalidMessage, Message: message, Cause: err}
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

// under returns a value within v.
func (v value) under(name string, raw abi.Raw) value {
	v.raw, v.path = raw, joinPath(v.path, name)
	return v
}
