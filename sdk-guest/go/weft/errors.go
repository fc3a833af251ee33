package weft

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// The codes of errors that host calls return. Match them with [CodeOf].
const (
	CodeInvalidMessage     = "invalid_message"
	CodeNotFound           = "not_found"
	CodeConflict           = "conflict"
	CodeFailedPrecondition = "failed_precondition"
	CodePermissionDenied   = "permission_denied"
	CodeLimitExceeded      = "limit_exceeded"
	CodeTimeout            = "timeout"
	CodeSchemaViolation    = "schema_violation"
	CodeUnavailable        = "unavailable"
	CodeInternal           = "internal"
)

// CodePanic is the code of a step that panicked, with any compiler.
const CodePanic = "panic"

// Error is an error with a code for programs and a message for people. A step that
// returns an Error fails with it, and host calls return one when they fail. An error of
// any other type fails a step with the code "error".
type Error struct {
	Code    string
	Message string
	// Retryable is false for a final failure, which is not retried whatever the step's
	// retry policy says; see [Error.Final]. True and nil leave the decision to the
	// policy.
	Retryable *bool
	// Data is any further value for the code that handles the failure.
	Data any
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Final marks the failure as final, so that it is not retried, and returns e.
func (e *Error) Final() *Error {
	e.Retryable = new(bool)
	return e
}

// With attaches a value to the failure, for the code that handles it, and returns e.
func (e *Error) With(data any) *Error {
	e.Data = data
	return e
}

// Errorf makes an error with a code. In the format, %s, %d, %v and %q stand for the next
// argument (%q in quotes) and %% for a percent sign. Widths and other verbs are not
// supported, and floats show at most six decimals.
func Errorf(code, format string, args ...any) *Error {
	b := make([]byte, 0, len(format)+16*len(args))
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b = append(b, format[i])
			continue
		}
		i++
		switch {
		case format[i] == '%':
			b = append(b, '%')
		case len(args) == 0:
			b = append(b, "%!"...)
			b = append(b, format[i])
		default:
			text := textOf(args[0])
			if format[i] == 'q' {
				text = quote(text)
			}
			b = append(b, text...)
			args = args[1:]
		}
	}
	return &Error{Code: code, Message: string(b)}
}

// textOf formats a value for a message.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case error:
		return v.Error()
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float64:
		return textOfFloat(v)
	case []byte:
		return string(v)
	case nil:
		return "nil"
	}
	return "?"
}

// textOfFloat formats a float with up to six decimals. (The formatter of strconv would
// add 10 KB to a guest.)
func textOfFloat(f float64) string {
	sign := ""
	if f < 0 {
		sign, f = "-", -f
	}
	if !(f < 1e12) { // also true for NaN
		return sign + "(a float of 1e12 or more)"
	}
	millionths := uint64(f*1e6 + 0.5)
	whole := sign + strconv.FormatUint(millionths/1e6, 10)
	part := strconv.FormatUint(1e6+millionths%1e6, 10)[1:] // keeps leading zeros
	if part = strings.TrimRight(part, "0"); part == "" {
		return whole
	}
	return whole + "." + part
}

// CodeOf returns the code of an error: the code of the [Error] that it is or wraps,
// "error" for any other error, "" for nil.
func CodeOf(err error) string {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) && e.Code != "" {
		return e.Code
	}
	return "error"
}

// encodeError writes an error as the boundary's map.
func encodeError(e *codec.Encoder, err error) {
	fields := map[string]any{"code": CodeOf(err), "message": err.Error()}
	var we *Error
	if errors.As(err, &we) {
		if we == err {
			fields["message"] = we.Message // without the code
		}
		if we.Retryable != nil {
			fields["retryable"] = *we.Retryable
		}
		if we.Data != nil {
			data, err := codec.Append(nil, we.Data)
			if err != nil { // omit the data rather than fail again
				data, _ = codec.Append(nil, err.Error())
			}
			fields["data"] = codec.Raw(data)
		}
	}
	e.Value(fields)
}

// decodeError reads an error from the boundary's map.
func decodeError(d *cbor.Decoder) *Error {
	e := &Error{}
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		switch d.Text() {
		case "code":
			e.Code = d.Text()
		case "message":
			e.Message = d.Text()
		case "retryable":
			retryable := d.Bool()
			e.Retryable = &retryable
		case "data":
			e.Data = d.Value()
		default:
			d.Skip()
		}
	}
	return e
}

// callError returns the error of a failed host call, or nil. what precedes the host's
// message and names the attempted operation; advice follows the message.
func callError(status uint32, response []byte, what, advice string) error {
	if status == boundary.OK {
		return nil
	}
	d := cbor.NewDecoder(response)
	e := decodeError(d)
	if d.Failed() || e.Code == "" {
		e.Code = CodeInternal
		e.Message = "the host failed with status " + strconv.Itoa(int(status)) + " and no readable error"
	}
	e.Message = what + ": " + e.Message
	if advice != "" && e.Code == CodeNotFound {
		e.Message += "; " + advice
	}
	return e
}

// misuse returns the error of a call that the SDK refuses.
func misuse(message string) *Error { return &Error{Code: CodeInvalidMessage, Message: message} }
