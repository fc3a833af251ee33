package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

func workflowOf(j *apiwire.Workflow) (info host.WorkflowInfo) {
	if apiwire.Fill(&info, j); j.Timeout != nil {
		apiwire.Fill(&info.Timeout, j.Timeout)
	}
	return info
}

// Compose composes a workflow of plugins, or changes the settings of a workflow; see
// [host.Plugins]. changed is false if the workflow is already the same. The result
// describes the workflow without its events.
//
// # Errors
//
// CodeInvalidPlugin with all Problems, CodeConflict, CodeInvalidArgument, CodeTooLarge,
// CodePermissionDenied.
func (c *Client) Compose(ctx context.Context, name string, composition host.Composition) (info host.WorkflowInfo, changed bool, err error) {
	var put apiwire.Composition
	put.Plugins, put.Flow = composition.Plugins, apiwire.Value(composition.Flow)
	apiwire.Fill(&put.Settings, &composition.Settings)
	body, err := marshal(put)
	if err != nil {
		return host.WorkflowInfo{}, false, &host.Error{Code: host.CodeInvalidArgument, Message: "The composition is not JSON: " + err.Error(), Cause: err}
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: workflowPath(name), contentType: "application/json", body: body})
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return host.WorkflowInfo{}, false, a.failure()
	}
	var j apiwire.Workflow
	if err := a.decode(&j); err != nil {
		return host.WorkflowInfo{}, false, err
	}
	return workflowOf(&j), a.status == http.StatusCreated, nil
}

// Decompose removes a composed workflow; CodeConflict while runs use it.
func (c *Client) Decompose(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: workflowPath(name)})
	return err
}

// About reads the description of a workflow without its events.
func (c *Client) About(ctx context.Context, name string) (host.WorkflowInfo, error) {
	var j apiwire.Workflow
	if err := c.getJSON(ctx, workflowPath(name), nil, &j); err != nil {
		return host.WorkflowInfo{}, err
	}
	return workflowOf(&j), nil
}

func workflowPath(name string) string { return "/workflows/" + url.PathEscape(name) }
