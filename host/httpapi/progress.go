package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/turns"
)

// progressEvery is how often the stage is checked.
const progressEvery = 200 * time.Millisecond

// tellProgress sends an interim answer at each change of the turn, if the client asks for
// interim answers. It stops when told is called. The request's goroutine calls told
// before it answers.
func tellProgress(c echo.Context, turn *turns.Turn) (told func()) {
	if !strings.EqualFold(c.Request().Header.Get(apiwire.HeaderProgress), "true") || !c.Request().ProtoAtLeast(1, 1) {
		return func() {}
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	w := c.Response().Writer
	go func() {
		defer close(ended)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		var last turns.Stage
		for {
			if now := turn.Stage(); now != last {
				last = now
				w.Header().Set(apiwire.HeaderProgress, stageText(now))
				w.WriteHeader(http.StatusProcessing) // echo would count its own WriteHeader as the answer
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		w.Header().Del(apiwire.HeaderProgress)
	}
}

func stageText(s turns.Stage) string {
	if s.Name != turns.StageWaiting {
		return s.Name
	}
	return s.Name + "; ahead=" + strconv.Itoa(s.Ahead)
}
