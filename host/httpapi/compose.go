package httpapi

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// putWorkflow composes a workflow of plugins, or changes its settings.
func (s *Server) putWorkflow(c echo.Context) error {
	name := param(c, "name")
	if !pluginName.MatchString(name) {
		return invalid("A workflow's name matches %s, and '%s' does not", pluginName, clip(name))
	}
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	composition, err := parseComposition(body, name)
	if err != nil {
		return err
	}
	info, changed, err := s.cfg.Plugins.Compose(c.Request().Context(), tenantOf(c), name, composition)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if changed {
		status = http.StatusCreated
	}
	return s.answerWorkflow(c, status, &info)
}

// deleteWorkflow removes a composed workflow.
func (s *Server) deleteWorkflow(c echo.Context) error {
	return answerGone(c, s.cfg.Plugins.Decompose(c.Request().Context(), tenantOf(c), param(c, "name")))
}

// parseComposition reads the composition of a workflow. A timeout may stand next to the
// other settings, too, and the name may be repeated.
func parseComposition(body value, name string) (host.Composition, error) {
	var put apiwire.Composition
	var out host.Composition
	err := body.into(&put)
	switch {
	case err != nil:
		return out, err
	case put.Name != "" && put.Name != name:
		return out, invalid("'name' is %q, and the path says %q", clip(put.Name), name)
	case put.Plugins != nil && len(put.Plugins) == 0:
		return out, invalid("'plugins' must be a list of names; leave it out for the plugin that makes the workflow by itself")
	case put.Timeout != nil && put.Settings.Timeout != nil && *put.Timeout != *put.Settings.Timeout:
		return out, invalid("'timeout' and 'settings.timeout' differ: give one of them")
	case put.Timeout != nil:
		put.Settings.Timeout = put.Timeout
	}
	out.Plugins, out.Flow = put.Plugins, abi.Raw(put.Flow)
	apiwire.Fill(&out.Settings, &put.Settings)
	return out, nil
}

// answerWorkflow answers with the description of a workflow.
func (s *Server) answerWorkflow(c echo.Context, status int, info *host.WorkflowInfo) error {
	var out apiwire.Workflow
	apiwire.Fill(&out, info)
	t := info.Timeout
	if !t.Set {
		t.Span = cmp.Or(s.cfg.RunTimeout, host.DefaultRunTimeout)
	}
	if t.Span > 0 {
		out.Timeout = &apiwire.RunTimeout{}
		apiwire.Fill(out.Timeout, &t)
	}
	return answer(c, status, &out)
}
