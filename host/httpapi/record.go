package httpapi

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
)

// internalTypes is the ancestry that clients know of the runtime's internal
// events.
var internalTypes = []string{"InternalDispatchEvent"}

// recordStatus is the HTTP status under which a run's record is answered.
func recordStatus(run *host.Run) int {
	switch run.Status {
	case host.StatusRunning:
		return http.StatusAccepted
	case host.StatusCompleted:
		return http.StatusOK
	default:
		return http.StatusInternalServerError
	}
}

// sendRecord answers the record of a run.
func (s *Server) sendRecord(c echo.Context, status int, run *host.Run) error {
	about(c, run)
	return s.answerJSON(c, status, func(dst []byte) ([]byte, error) { return appendRecord(dst, run, false) })
}

// appendRecord appends a run's record as JSON. bare replaces the result's
// envelope by its content, as older clients want it.
func appendRecord(dst []byte, run *host.Run, bare bool) ([]byte, error) {
	dst = append(dst, `{"handler_id":`...)
	dst = appendString(dst, run.HandlerID)
	dst = append(dst, `,"workflow_name":`...)
	dst = appendString(dst, run.Workflow)
	dst = append(dst, `,"run_id":`...)
	dst = appendString(dst, run.RunID)
	dst = append(dst, `,"error":`...)
	dst = appendStringOrNull(dst, run.Error)
	dst = append(dst, `,"result":`...)
	dst, err := appendResult(dst, run.Result, bare)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `,"result_unreadable":false,"status":`...)
	dst = appendString(dst, string(run.Status))
	dst = append(dst, `,"started_at":`...)
	dst = appendStamp(dst, run.Started)
	dst = append(dst, `,"updated_at":`...)
	dst = appendStamp(dst, run.Updated)
	dst = append(dst, `,"completed_at":`...)
	if run.Completed == 0 {
		dst = append(dst, "null"...)
	} else {
		dst = appendStamp(dst, run.Completed)
	}
	dst = append(dst, `,"session_id":`...)
	dst = appendString(dst, run.SessionID)
	if run.Version != "" {
		dst = append(dst, `,"version":`...)
		dst = appendString(dst, run.Version)
	}
	if run.ErrorCode != "" {
		dst = append(dst, `,"error_code":`...)
		dst = appendString(dst, run.ErrorCode)
	}
	dst = append(dst, `,"paused":`...)
	dst = strconv.AppendBool(dst, run.Paused)
	if run.Blocked != nil {
		dst = append(dst, `,"blocked":{"code":`...)
		dst = appendString(dst, run.Blocked.Code)
		dst = append(dst, `,"message":`...)
		dst = appendString(dst, run.Blocked.Message)
		dst = append(dst, '}')
	}
	for i, w := range run.WaitingFor {
		if i == 0 {
			dst = append(dst, `,"waiting_for":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, '{')
		if w.Step != "" {
			dst = append(dst, `"step":`...)
			dst = append(appendString(dst, w.Step), ',')
		}
		if w.Reason != "" {
			dst = append(dst, `"reason":`...)
			dst = append(appendString(dst, w.Reason), ',')
		}
		switch {
		case w.Child != "":
			dst = append(dst, `"child":`...)
			dst = append(appendString(dst, w.Child), ',')
		case w.Resource != "":
			dst = append(dst, `"resource":`...)
			dst = append(appendString(dst, w.Resource), ',')
		case w.Until != 0:
			dst = append(dst, `"until":`...)
			dst = append(appendStamp(dst, w.Until), ',')
		case w.Reason == "":
			dst = append(dst, `"type":`...)
			dst = append(appendString(dst, w.Type), ',')
		}
		if w.WaiterID != "" {
			dst = append(dst, `"waiter_id":`...)
			dst = append(appendString(dst, w.WaiterID), ',')
		}
		dst = append(dst, `"since":`...)
		dst = appendStamp(dst, w.Since)
		if w.Requirements != "" {
			dst = append(append(dst, `,"requirements":`...), w.Requirements...)
		}
		dst = append(dst, '}')
	}
	if len(run.WaitingFor) > 0 {
		dst = append(dst, ']')
	}
	for i, k := range run.Kept {
		if i == 0 {
			dst = append(dst, `,"kept":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"type":`...), k.Type)
		if k.Step != "" {
			dst = appendString(append(dst, `,"step":`...), k.Step)
		}
		dst = append(dst, '}')
	}
	if len(run.Kept) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"steps":`...)
	dst = strconv.AppendUint(dst, run.Steps, 10)
	if run.ErrorStep != "" {
		dst = append(dst, `,"error_step":`...)
		dst = appendString(dst, run.ErrorStep)
	}
	if run.ErrorAttempt != 0 {
		dst = append(dst, `,"error_attempt":`...)
		dst = strconv.AppendUint(dst, run.ErrorAttempt, 10)
	}
	if remedy := remedyOf(run); remedy != "" {
		dst = append(dst, `,"error_remedy":`...)
		dst = appendString(dst, remedy)
	}
	return append(dst, '}'), nil
}

// remedyOf says what to do about a run that has failed or is blocked; "" for others.
func remedyOf(run *host.Run) string {
	switch {
	case run.Status == host.StatusFailed:
		return codes.Remedy(codes.InRun, run.ErrorCode, run.Error)
	case run.Blocked != nil:
		return codes.Remedy(codes.InBlocked, run.Blocked.Code, run.Blocked.Message)
	}
	return ""
}

func appendStringOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendString(dst, s)
}

// appendResult appends a run's result: its envelope, or bare the value of the
// base stop event's result and the fields of any other.
func appendResult(dst []byte, e *host.StreamEvent, bare bool) ([]byte, error) {
	switch {
	case e == nil:
		return append(dst, "null"...), nil
	case !bare:
		return appendEnvelope(dst, e, true)
	case e.Base && e.Type == abi.TypeStop:
		return appendRaw(dst, lookup(e.Body, "result"))
	default:
		return appendRaw(dst, e.Body)
	}
}

// appendEnvelope appends an event as clients read it.
func appendEnvelope(dst []byte, e *host.StreamEvent, qualified bool) ([]byte, error) {
	dst = append(dst, `{"value":`...)
	body := e.Body
	if body == nil {
		body = abi.EmptyMap
	}
	dst, err := appendRaw(dst, body)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `,"qualified_name":`...)
	if qualified {
		dst = appendString(dst, e.QualifiedName())
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"type":`...)
	dst = appendString(dst, e.Type)
	dst = append(dst, `,"types":`...)
	if types := ancestry(e); types == nil {
		dst = append(dst, "null"...)
	} else {
		dst = appendStrings(dst, types)
	}
	return append(dst, '}'), nil
}

// ancestry gives the types field of an event's envelope, nil for none.
func ancestry(e *host.StreamEvent) []string {
	switch {
	case len(e.Types) > 0:
		return e.Types
	case e.Internal:
		return internalTypes
	default:
		return nil
	}
}
