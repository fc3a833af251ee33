package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// forkHandler lets a run go on a second time, from a position of its journal.
func (s *Server) forkHandler(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	at, err := parseFork(body)
	if err != nil {
		return err
	}
	fork, err := s.cfg.Runs.Fork(c.Request().Context(), tenantOf(c), param(c, "id"), at)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) { return appendFork(dst, &fork) })
}

// parseFork reads where a fork is to begin.
func parseFork(body value) (uint64, error) {
	fields, err := body.only("at")
	if err != nil {
		return 0, err
	}
	v := fields["at"]
	if v.raw == nil || v.null() {
		return 0, invalid("'at' is missing: the seq of an entry of the run's journal")
	}
	decoded, err := v.decode()
	if err != nil {
		return 0, err
	}
	at, ok := decoded.(int64)
	if !ok || at < 1 {
		return 0, invalid("'at' must be the seq of an entry of the run's journal, a number from 1 on")
	}
	return uint64(at), nil
}

// appendFork appends the record of a fork, and what was begun anew.
func appendFork(dst []byte, fork *host.Fork) ([]byte, error) {
	dst, err := appendRecord(dst, &fork.Run, false)
	if err != nil {
		return dst, err
	}
	f := &fields{b: append(dst[:len(dst)-1], `,"anew":[`...)}
	for i := range fork.Anew {
		r := &fork.Anew[i]
		if i > 0 {
			f.b = append(f.b, ',')
		}
		f.b = append(f.b, '{')
		f.text("kind", r.Kind)
		f.text("step", r.Step)
		f.text("workflow_name", r.Workflow)
		f.text("resource", r.Resource)
		f.text("handler_id", r.HandlerID)
		f.text("was", r.Was)
		f.b = append(f.b, '}')
	}
	return append(f.b, "]}"...), f.err
}
