package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/object"
)

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

// answerRecord answers the record of a run.
func answerRecord(c echo.Context, status int, run *host.Run) error {
	about(c, run)
	var r apiwire.Record
	showRun(&r, run)
	return answer(c, status, &r)
}

// showRun sets the record of a run.
func showRun(r *apiwire.Record, run *host.Run) {
	if r.Show(run); run.Result == nil {
		r.Result = nil
		return
	}
	r.Result = &apiwire.Envelope{}
	r.Result.Show(run.Result, true)
}

// answerBare answers the record of a run with the bare result, for older clients: the
// result of the base stop event, or the fields of any other stop event.
func answerBare(c echo.Context, status int, run *host.Run) error {
	about(c, run)
	var r apiwire.BareRecord
	r.Show(run)
	if e := run.Result; e != nil {
		if r.Result = apiwire.Value(e.Body); e.Base && e.Type == abi.TypeStop {
			r.Result = apiwire.Value(object.Lookup(e.Body, "result"))
		}
	}
	return answer(c, status, &r)
}
