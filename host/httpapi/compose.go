package httpapi

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// putWorkflow composes a workflow of plugins, or gives one settings.
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
	if err := s.cfg.Plugins.Decompose(c.Request().Context(), tenantOf(c), param(c, "name")); err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// parseComposition reads the composition of a workflow. A timeout may stand
// beside the other settings too, and the name again.
func parseComposition(body value, name string) (host.Composition, error) {
	var out host.Composition
	fields, err := body.only("plugins", "flow", "settings", "timeout", "name")
	if err != nil {
		return out, err
	}
	again, err := fields["name"].optionalText()
	if err != nil {
		return out, err
	}
	if again != "" && again != name {
		return out, invalid("'name' is %q, and the path says %q", clip(again), name)
	}
	if v := fields["plugins"]; v.raw != nil && !v.null() {
		if out.Plugins, err = v.names(); err != nil {
			return out, err
		}
	}
	if v := fields["flow"]; v.raw != nil && !v.null() {
		if !v.object() {
			return out, invalid("'flow' must be an object")
		}
		if out.Flow, err = v.canonical(); err != nil {
			return out, err
		}
	}
	if v := fields["settings"]; v.given() {
		if out.Settings, err = parseSettings(v); err != nil {
			return out, err
		}
	}
	if t := fields["timeout"]; t.raw != nil && !t.null() {
		d, err := t.seconds()
		if err != nil {
			return out, err
		}
		if out.Settings.Timeout != nil && *out.Settings.Timeout != d {
			return out, invalid("'timeout' and 'settings.timeout' differ: give one of them")
		}
		out.Settings.Timeout = &d
	}
	return out, nil
}

// only is fields, for an object whose unknown members are refused: a setting
// that is misspelt would be missed much later.
func (v value) only(known ...string) (map[string]value, error) {
	fields, err := v.fields(known...)
	if err != nil {
		return nil, err
	}
	m := v.members()
	for name, _, ok := m.next(); ok; name, _, ok = m.next() {
		if key := string(name); !slices.Contains(known, key) {
			return nil, invalid("'%s' is not known: use %s", joinPath(v.path, clip(key)), strings.Join(known, ", "))
		}
	}
	return fields, nil
}

// names reads a list of names that is not empty.
func (v value) names() ([]string, error) {
	decoded, err := v.decode()
	if err != nil {
		return nil, err
	}
	list, ok := decoded.([]any)
	if !ok || len(list) == 0 {
		return nil, invalid("'%s' must be a list of names; leave it out for the plugin that makes the workflow by itself", v.path)
	}
	names := make([]string, len(list))
	for i, item := range list {
		if names[i], ok = item.(string); !ok {
			return nil, invalid("'%s.%d' must be a text", v.path, i)
		}
	}
	return names, nil
}

// decode reads a value as a whole.
func (v value) decode() (any, error) {
	raw, err := v.canonical()
	if err != nil {
		return nil, err
	}
	return abi.DecodeValue(raw)
}

func parseSettings(v value) (host.WorkflowSettings, error) {
	var out host.WorkflowSettings
	if !v.object() {
		return out, invalid("'%s' must be an object", v.path)
	}
	fields, err := v.only("timeout", "description", "config")
	if err != nil {
		return out, err
	}
	if out.Description, err = fields["description"].optionalText(); err != nil {
		return out, err
	}
	if t := fields["timeout"]; t.raw != nil && !t.null() {
		d, err := t.seconds()
		if err != nil {
			return out, err
		}
		out.Timeout = &d
	}
	if config := fields["config"]; config.given() {
		out.Config, err = config.byStep()
	}
	return out, err
}

// seconds reads a time of 0 or more.
func (v value) seconds() (time.Duration, error) {
	decoded, err := v.decode()
	if err != nil {
		return 0, err
	}
	bad := invalid("'%s' must be a number of seconds, at least 1e-9, or 0 for none", v.path)
	var seconds float64
	switch n := decoded.(type) {
	case int64:
		seconds = float64(n)
	case uint64:
		seconds = float64(n)
	case float64:
		seconds = n
	default:
		return 0, bad
	}
	nanos := math.Round(seconds * 1e9)
	if seconds < 0 || seconds > 0 && nanos < 1 || nanos >= math.MaxInt64 {
		return 0, bad
	}
	return time.Duration(nanos), nil
}

// byStep reads the configurations of steps.
func (v value) byStep() (map[string]abi.Raw, error) {
	raw, err := v.canonical()
	if err != nil {
		return nil, err
	}
	all := value{raw: raw, cbor: true, path: v.path}
	if !all.object() {
		return nil, invalid("'%s' must be an object", v.path)
	}
	config := map[string]abi.Raw{}
	m := all.members()
	for name, member, ok := m.next(); ok; name, member, ok = m.next() {
		if !member.object() {
			return nil, invalid("'%s' must be an object", joinPath(v.path, clip(string(name))))
		}
		config[string(name)] = member.raw
	}
	return config, m.err
}

// answerWorkflow answers what a workflow is made of.
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
