package httpapi

import (
	"encoding/base64"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// handlerSnapshot answers all that a run is made of.
func (s *Server) handlerSnapshot(c echo.Context) error {
	snap, err := s.cfg.Runs.Export(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textHandlerNotFound)
	}
	out := apiwire.Snapshot{Format: apiwire.SnapshotFormat}
	apiwire.Fill(&out, &snap)
	return answer(c, http.StatusOK, &out)
}

// parseSnapshot reads the snapshot that a start brings. What is in it is checked
// where the run is made.
func parseSnapshot(v value) (*host.RunSnapshot, error) {
	if !v.object() {
		return nil, invalid("'%s' must be a snapshot of a run, an object", v.path)
	}
	if notOurs := formatOf(v); notOurs != nil {
		return nil, notOurs
	}
	m, err := v.only("format", "version", "workflow_name", "handler_id", "run_id", "status", "modules", "session", "held")
	if err != nil {
		return nil, err
	}
	decoded, err := m["version"].decode()
	version, ok := decoded.(int64)
	switch {
	case err != nil || !ok || version < 1:
		return nil, invalid("'%s.version' must be a number from 1 on", v.path)
	case version > host.RunSnapshotVersion:
		return nil, invalid("'%s' has version %d, this server reads up to %d: a newer one wrote it", v.path, version, host.RunSnapshotVersion)
	}
	out := &host.RunSnapshot{Version: int(version)}
	for name, to := range map[string]*string{"workflow_name": &out.Workflow, "handler_id": &out.HandlerID, "run_id": &out.RunID} {
		if *to, err = m[name].optionalText(); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*[]byte{"session": &out.Session, "held": &out.Held} {
		text, err := m[name].optionalText()
		if err == nil {
			*to, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return nil, invalid("'%s.%s' does not read: it is not what a server wrote", v.path, name)
		}
	}
	return out, nil
}

// formatOf refuses what is not a snapshot that a weft server wrote, whatever fields it
// has: the context of a client in another language, for example.
func formatOf(v value) error {
	m := v.members()
	for name, member, ok := m.next(); ok; name, member, ok = m.next() {
		if string(name) != "format" {
			continue
		}
		if format, err := member.optionalText(); err == nil && format == apiwire.SnapshotFormat {
			return nil
		}
		break
	}
	if m.err != nil {
		return m.err
	}
	return invalid("'%s' is not a snapshot of weft: its format is not \"%s\". GET /handlers/ID/snapshot gives one; "+
		"a context that a Python workflow has serialized cannot be restored here", v.path, apiwire.SnapshotFormat)
}
