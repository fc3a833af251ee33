package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/object"
)

// handlerSnapshot answers all data of a run.
func (s *Server) handlerSnapshot(c echo.Context) error {
	snap, err := s.cfg.Runs.Export(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	out := apiwire.Snapshot{Format: apiwire.SnapshotFormat}
	apiwire.Fill(&out, &snap)
	return answer(c, http.StatusOK, &out)
}

// parseSnapshot reads the snapshot of a start. Its content is checked where the run is
// made.
func parseSnapshot(v value) (*host.RunSnapshot, error) {
	if format, err := v.under("format", object.Lookup(v.raw, "format")).optionalText(); err != nil || format != apiwire.SnapshotFormat {
		return nil, invalid("'%s' is not a snapshot of weft: its format is not %q. GET /handlers/ID/snapshot gives one; "+
			"a context that a Python workflow has serialized cannot be restored here", v.path, apiwire.SnapshotFormat)
	}
	var snap apiwire.Snapshot
	if err := v.into(&snap); err != nil {
		return nil, err
	}
	switch {
	case snap.Version < 1:
		return nil, invalid("'%s.version' must be a whole number from 1 on", v.path)
	case snap.Version > host.RunSnapshotVersion:
		return nil, invalid("'%s' has version %d, this server reads up to %d: a newer one wrote it", v.path, snap.Version, host.RunSnapshotVersion)
	}
	return &host.RunSnapshot{
		Version: snap.Version, Workflow: snap.Workflow, HandlerID: snap.HandlerID, RunID: snap.RunID, Session: snap.Session, Held: snap.Held,
	}, nil
}
