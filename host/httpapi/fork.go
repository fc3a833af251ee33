package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// forkHandler continues a run a second time, from a position of its journal.
func (s *Server) forkHandler(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	req, answered, err := parseFork(body)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	req.Tenant, req.ID = tenantOf(c), param(c, "id")
	if answered != nil {
		run, err := s.cfg.Runs.Get(ctx, req.Tenant, req.ID)
		if err != nil {
			return orNotFound(err, textHandlerNotFound)
		}
		req.Answer = &abi.Event{Type: answered.typeName(run.Workflow), Body: answered.body}
	}
	fork, err := s.cfg.Runs.Fork(ctx, req)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	return answerFork(c, &fork)
}

// parseFork reads the body of a fork. The answer, if there is one, has the type that the
// client has written.
func parseFork(body value) (req host.ForkRequest, answer *clientEvent, err error) {
	var fork apiwire.ForkAt
	if err := body.into(&fork); err != nil {
		return req, nil, err
	}
	req = host.ForkRequest{At: fork.At, Patch: abi.Raw(fork.Patch), State: abi.Raw(fork.State), Step: fork.Step, Paused: fork.Paused, DryRun: fork.DryRun}
	changes := 0
	for _, v := range []apiwire.Value{fork.State, fork.Patch, fork.Edits} {
		if v != nil {
			changes++
		}
	}
	switch {
	case fork.At == 0:
		return req, nil, invalid("'at' is missing: the seq of an entry of the run's journal")
	case changes > 1:
		return req, nil, invalid("Only one of 'state', 'patch' and 'edits' can be given")
	case fork.Step != "" && fork.Answer == nil:
		return req, nil, invalid("'step' is given without 'answer'")
	}
	if fork.Edits != nil {
		raw, err := body.under("edits", abi.Raw(fork.Edits)).canonical()
		if err != nil {
			return req, nil, err
		}
		if req.Edits, err = abi.DecodeEdits(raw); err != nil {
			return req, nil, host.Errorf(host.CodeInvalidArgument, "'edits' is not a list of edits, such as [[\"set\", \"user.name\", \"Ada\"]]: %w", err)
		}
	}
	if fork.Answer == nil {
		return req, nil, nil
	}
	e, err := readEvent(body.under("answer", abi.Raw(fork.Answer)), false)
	return req, &e, err
}

// answerFork answers the record of a run that continues, and the work that was started
// again.
func answerFork(c echo.Context, fork *host.Fork) error {
	var f apiwire.Fork
	showRun(&f.Record, &fork.Run)
	f.Anew = apiwire.FillAll[apiwire.Renewed](fork.Anew)
	return answer(c, http.StatusOK, &f)
}
