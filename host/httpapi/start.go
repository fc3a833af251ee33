package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/object"
)

// run starts a run and answers its record when it has ended.
func (s *Server) run(c echo.Context) error {
	req, err := s.readStart(c, true)
	if err != nil {
		return err
	}
	defer admitted(&req)
	ctx, cancel := s.untilShutdown(c.Request().Context())
	defer cancel()
	run, err := s.cfg.Runs.Start(ctx, req)
	if err != nil {
		return orNotFound(err, textWorkflowNotFound)
	}
	return answerRecord(c, recordStatus(&run), &run)
}

// runNoWait starts a run and answers its record when the start is durable.
func (s *Server) runNoWait(c echo.Context) error {
	req, err := s.readStart(c, false)
	if err != nil {
		return err
	}
	defer admitted(&req)
	run, err := s.cfg.Runs.Start(c.Request().Context(), req)
	if err != nil {
		return orNotFound(err, textWorkflowNotFound)
	}
	return answerRecord(c, http.StatusOK, &run)
}

// readStart reads the request of a start, if there is room for a start. The caller calls
// Admitted of the request. The workflow is looked up first: an unknown workflow is a 404
// whatever the body says.
func (s *Server) readStart(c echo.Context, wait bool) (req host.StartRequest, err error) {
	info, err := s.cfg.Plugins.Workflow(c.Request().Context(), tenantOf(c), param(c, "name"))
	if err != nil {
		return req, orNotFound(err, textWorkflowNotFound)
	}
	release, err := s.askStart(c, info.Name, wait)
	if err != nil {
		return req, orNotFound(err, textWorkflowNotFound)
	}
	defer func() {
		if err != nil && release != nil {
			release()
		}
	}()
	body, once, err := s.readOnce(c)
	if err != nil {
		return req, err
	}
	req, err = parseStart(body, &info)
	req.Tenant, req.Once, req.Wait, req.Admitted = tenantOf(c), once, wait, release
	return req, err
}

// admitted calls the Admitted of a start request, if it has one.
func admitted(req *host.StartRequest) {
	if req.Admitted != nil {
		req.Admitted()
	}
}

// parseStart reads the body of a start, without the tenant. Runs checks the event's
// fields against their schema when the run is made.
func parseStart(body value, info *host.WorkflowInfo) (host.StartRequest, error) {
	req := host.StartRequest{Workflow: info.Name}
	var start apiwire.Start
	if n, _ := cbor.Head(body.raw, 0); n <= maxMembers {
		if err := knownFields(body, shapeOf(reflect.TypeFor[apiwire.Start]()).names, "start_event", info.StartSchema); err != nil {
			return req, err
		}
	}
	err := body.into(&start)
	if err != nil {
		return req, err
	}
	if req.Event, err = startEvent(body.under("start_event", abi.Raw(start.Event)), info); err != nil {
		return req, err
	}
	if start.Kwargs != nil {
		req.Event.Body = object.Merge(abi.Raw(start.Kwargs), req.Event.Body, "")
	}
	req.HandlerID, req.SessionID, req.OnBusy = start.HandlerID, start.SessionID, start.OnBusy
	switch req.OnBusy {
	case "", host.OnBusyShare, host.OnBusyQueue, host.OnBusyReject:
	default:
		return req, invalid("'on_busy' must be share, queue or reject, not %q", clip(string(req.OnBusy)))
	}
	if start.Snapshot != nil {
		req.Snapshot, err = parseSnapshot(body.under("context", abi.Raw(start.Snapshot)))
	}
	return req, err
}

// startEvent reads the start event. If the request has none, the event has no fields. If
// the client names no type, the type stays open, so that the event fits any version of
// the workflow.
func startEvent(v value, info *host.WorkflowInfo) (abi.Event, error) {
	if !v.given() {
		return abi.Event{Body: abi.EmptyMap}, nil
	}
	e, err := readEvent(v, true)
	if err != nil {
		return abi.Event{}, err
	}
	typ := e.typeName(info.Name)
	if typ == "" || typ == info.StartType {
		return abi.Event{Type: typ, Body: e.body}, nil
	}
	if typ == abi.TypeStart && info.Flow != nil {
		// Clients know only the base type: the flow's own type is internal to the server.
		return abi.Event{Body: e.body}, nil
	}
	names := make([]string, len(info.Events))
	for i, known := range info.Events {
		names[i] = known.Type
	}
	if slices.Contains(names, typ) {
		return abi.Event{}, invalid("Start event must be an instance of %s", info.StartType)
	}
	return abi.Event{}, invalid("Validation error for 'start_event': Invalid event type: %s. Expected one of %s",
		typ, strings.Join(names, ", "))
}

// sendEvent sends an event to a running run. If the run has ended, the answer is a
// conflict, even if the event is invalid. A request with an idempotency key goes on to
// Runs, because an earlier request with the key may have succeeded.
func (s *Server) sendEvent(c echo.Context) error {
	ctx, id := c.Request().Context(), param(c, "id")
	run, err := s.cfg.Runs.Get(ctx, tenantOf(c), id)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	if run.Status.Final() && c.Request().Header.Get(apiwire.HeaderOnce) == "" {
		return host.Errorf(host.CodeConflict, "Workflow already completed")
	}
	body, once, err := s.readOnce(c)
	if err != nil {
		return err
	}
	event, step, err := parseSend(body, run.Workflow)
	if err != nil {
		return err
	}
	d, err := s.cfg.Runs.SendOnce(ctx, tenantOf(c), id, event, step, once)
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	sent := apiwire.Sent{Status: "sent"}
	apiwire.Fill(&sent, &d)
	return answer(c, http.StatusOK, &sent)
}

// parseSend reads the body of a posted event.
func parseSend(body value, workflow string) (event abi.Event, step string, err error) {
	var send apiwire.Send
	if err := body.into(&send); err != nil {
		return abi.Event{}, "", err
	}
	if send.Event == nil {
		return abi.Event{}, "", invalid("Event data is required")
	}
	e, err := readEvent(body.under("event", abi.Raw(send.Event)), false)
	return abi.Event{Type: e.typeName(workflow), Body: e.body}, send.Step, err
}
