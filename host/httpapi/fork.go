package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// forkHandler continues a run a second time, from a position of its journal.
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
	return answerFork(c, &fork)
}

// parseFork reads the position at which a fork begins.
func parseFork(body value) (uint64, error) {
	var fork apiwire.ForkAt
	if err := body.into(&fork); err != nil {
		return 0, err
	}
	if fork.At == 0 {
		return 0, invalid("'at' is missing: the seq of an entry of the run's journal")
	}
	return fork.At, nil
}

// answerFork answers the record of a run that continues, and the work that was started
// again.
func answerFork(c echo.Context, fork *host.Fork) error {
	var f apiwire.Fork
	showRun(&f.Record, &fork.Run)
	f.Anew = apiwire.FillAll[apiwire.Renewed](fork.Anew)
	return answer(c, http.StatusOK, &f)
}
