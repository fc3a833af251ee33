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

// extraDepth is how much deeper than a value the request around it may nest:
// the body's object and an event's envelope.
const extraDepth = 2

// value is an item of a request body. A body is transcoded once, as a whole, and what is
// in it stays encoded: a body of many megabytes is never held as decoded values.
type value struct {
	raw  abi.Raw // canonical CBOR; nil: there is none
	path string  // from the body's top, for messages
	cbor bool    // the body was CBOR, not JSON
	deep bool    // the body may nest deeper than a value
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

// readInto reads a request's body into a struct of package apiwire.
func (s *Server) readInto(c echo.Context, dst any) error {
	v, err := s.readValue(c)
	if err != nil {
		return err
	}
	return v.into(dst)
}

// readObject reads the object that a body has to be.
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

// parseBody makes the value of a whole body. Nothing at all is null. The memory that is
// needed meanwhile is taken from a place.
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

// parse is the value of a JSON text in the place of v.
func (v value) parse(text []byte) (_ value, err error) {
	v.cbor = false
	if v.raw, err = abi.FromJSON(text); err != nil {
		v.deep = true // if it is well formed
		v.raw, err = abi.Limits{MaxDepth: abi.MaxValueDepth + extraDepth}.FromJSON(text)
	}
	return v, err
}

// skipSpace gives the offset of the first byte that is not white space.
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

// given reports whether a field says anything: absent, null, "" and {} do not.
func (v value) given() bool { return !v.null() && (len(v.raw) > 1 || !v.text() && !v.object()) }

// canonical gives the encoded value, which nests no deeper than a value may.
func (v value) canonical() (abi.Raw, error) {
	if !v.deep {
		return v.raw, nil
	}
	if err := abi.CheckValue(v.raw, abi.MaxValueDepth); err != nil {
		var data *abi.DataError
		if errors.As(err, &data) {
			err = &abi.DataError{Path: data.Path, Offset: -1, Reason: data.Reason} // the offset would be that within v
		}
		return nil, v.malformed(err)
	}
	return v.raw, nil
}

// textOf gives the content of a text; what names the field otherwise.
func (v value) textOf() ([]byte, error) {
	if !v.text() {
		return nil, invalid("'%s' must be a text", v.path)
	}
	_, start := cbor.Head(v.raw, 0)
	return v.raw[start:], nil
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

// under is a value within v.
func (v value) under(name string, raw abi.Raw) value {
	v.raw, v.path = raw, joinPath(v.path, name)
	return v
}
