package client

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// settingsJSON are a workflow's settings as the API has them.
type settingsJSON struct {
	Timeout     *float64                   `json:"timeout,omitempty"` // seconds
	Description string                     `json:"description,omitempty"`
	Config      map[string]json.RawMessage `json:"config,omitempty"`
}

func settingsOf(s *host.WorkflowSettings) (settingsJSON, error) {
	j := settingsJSON{Description: s.Description}
	if s.Timeout != nil {
		seconds := s.Timeout.Seconds()
		j.Timeout = &seconds
	}
	for step, raw := range s.Config {
		text, err := abi.ToJSON(raw)
		if err != nil {
			return j, &host.Error{Code: host.CodeInvalidArgument, Message: "The configuration of step " + step + " is not JSON: " + err.Error(), Cause: err}
		}
		if j.Config == nil {
			j.Config = map[string]json.RawMessage{}
		}
		j.Config[step] = text
	}
	return j, nil
}

func (j *settingsJSON) settings() (host.WorkflowSettings, error) {
	s := host.WorkflowSettings{Description: j.Description}
	if j.Timeout != nil {
		d := time.Duration(math.Round(*j.Timeout * 1e9))
		s.Timeout = &d
	}
	for step, text := range j.Config {
		raw, err := rawOf(text)
		if err != nil {
			return s, err
		}
		if s.Config == nil {
			s.Config = map[string]abi.Raw{}
		}
		s.Config[step] = raw
	}
	return s, nil
}

// aboutJSON is what a workflow is made of, as the API writes it.
type aboutJSON struct {
	Name     string          `json:"name"`
	Plugins  []string        `json:"plugins"`
	Settings settingsJSON    `json:"settings"`
	SHA256   string          `json:"sha256"`
	Composed bool            `json:"composed"`
	Flow     json.RawMessage `json:"flow,omitempty"`
	Timeout  *struct {
		Seconds float64 `json:"seconds"`
		Set     bool    `json:"set"`
	} `json:"timeout"`
}

func (j *aboutJSON) info() (host.WorkflowInfo, error) {
	settings, err := j.Settings.settings()
	info := host.WorkflowInfo{Name: j.Name, Plugins: j.Plugins, Digest: j.SHA256, Composed: j.Composed, Settings: settings}
	if t := j.Timeout; t != nil {
		info.Timeout = host.WorkflowTimeout{Span: time.Duration(t.Seconds * float64(time.Second)), Set: t.Set}
	}
	if err == nil && j.Flow != nil {
		info.Flow, err = rawOf(j.Flow)
	}
	return info, err
}

// Compose makes a workflow of plugins, or gives one settings; see
// [host.Plugins]. changed is false when it is the same already. What it gives
// says what the workflow is made of, and nothing about its events.
//
// # Errors
//
// CodeInvalidPlugin with all Problems, CodeConflict, CodeInvalidArgument,
// CodeTooLarge, CodePermissionDenied.
func (c *Client) Compose(ctx context.Context, name string, composition host.Composition) (info host.WorkflowInfo, changed bool, err error) {
	settings, err := settingsOf(&composition.Settings)
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	var flow json.RawMessage
	if composition.Flow != nil {
		if flow, err = abi.ToJSON(composition.Flow); err != nil {
			return host.WorkflowInfo{}, false, &host.Error{Code: host.CodeInvalidArgument, Message: "The flow is not JSON: " + err.Error(), Cause: err}
		}
	}
	body, err := marshal(struct {
		Plugins  []string        `json:"plugins,omitempty"`
		Flow     json.RawMessage `json:"flow,omitempty"`
		Settings settingsJSON    `json:"settings"`
	}{composition.Plugins, flow, settings})
	if err != nil {
		return host.WorkflowInfo{}, false, &host.Error{Code: host.CodeInvalidArgument, Message: "The composition is not JSON", Cause: err}
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: workflowPath(name), contentType: "application/json", body: body})
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return host.WorkflowInfo{}, false, a.failure()
	}
	var j aboutJSON
	if err := a.decode(&j); err != nil {
		return host.WorkflowInfo{}, false, err
	}
	info, err = j.info()
	return info, a.status == http.StatusCreated, err
}

// Decompose removes a composed workflow; CodeConflict while runs hold it.
func (c *Client) Decompose(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: workflowPath(name)})
	return err
}

// About reads what a workflow is made of, and nothing about its events.
func (c *Client) About(ctx context.Context, name string) (host.WorkflowInfo, error) {
	var j aboutJSON
	if err := c.getJSON(ctx, workflowPath(name), nil, &j); err != nil {
		return host.WorkflowInfo{}, err
	}
	return j.info()
}

func workflowPath(name string) string { return "/workflows/" + url.PathEscape(name) }
