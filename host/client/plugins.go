package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/diagram"
	"github.com/weftrun/weft/host/turns"
)

func pluginOf(j *apiwire.PluginDetails) (info host.PluginInfo) {
	apiwire.Fill(&info, j)
	if len(info.ComposedIn) == 0 {
		info.ComposedIn = nil
	}
	if bytes.Equal(info.Manifest, abi.Null) {
		info.Manifest = nil
	}
	return info
}

// PutPlugin uploads a version of a plugin. created is false if the newest version already
// has the same bytes.
//
// # Errors
//
// CodeInvalidPlugin with all Problems, CodeConflict, CodeInvalidArgument, CodeTooLarge,
// CodePermissionDenied.
func (c *Client) PutPlugin(ctx context.Context, name string, wasm []byte) (info host.PluginInfo, created bool, err error) {
	j, created, err := c.putPlugin(ctx, name, wasm, nil, nil)
	if err != nil {
		return host.PluginInfo{}, false, err
	}
	return pluginOf(&j), created, nil
}

// PutPluginOptions say how a plugin is uploaded.
type PutPluginOptions struct {
	Check           bool // see [Client.PutPluginChecked]
	ReplaceWorkflow bool // the version's workflow may have another name than before
	// Progress, if not nil, is called with each stage of the upload, from a goroutine of
	// the connection. It is not called after the upload has ended. If the server or a
	// proxy does not report stages, only StageSending and StageSent occur.
	Progress func(turns.Stage)
}

// Stages of an upload before those of [turns.Turn].
const (
	StageSending = "sending" // the client sends the module
	StageSent    = "sent"    // the server has the module and checks it
)

// tracing returns a context whose request reports its stages, and a function that ends
// the reports.
func tracing(ctx context.Context, progress func(turns.Stage)) (traced context.Context, end func()) {
	var mu sync.Mutex // guards the fields below, and the order of the stages
	ended, answered := false, false
	tell := func(s turns.Stage) {
		mu.Lock()
		defer mu.Unlock()
		if ended || answered && s.Name == StageSent { // the reading and the writing goroutine report in any order
			return
		}
		answered = answered || s.Name != StageSending && s.Name != StageSent
		progress(s)
	}
	tell(turns.Stage{Name: StageSending})
	traced = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				tell(turns.Stage{Name: StageSent})
			}
		},
		Got1xxResponse: func(_ int, header textproto.MIMEHeader) error {
			if s, ok := stageOf(header.Get(apiwire.HeaderProgress)); ok {
				tell(s)
			}
			return nil
		},
	})
	return traced, func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}
}

// stageOf reads the stage of an interim answer.
func stageOf(text string) (s turns.Stage, ok bool) {
	name, ahead, waits := strings.Cut(text, "; ahead=")
	if s.Name = name; waits {
		n, err := strconv.Atoi(ahead)
		if err != nil || n < 0 {
			return s, false
		}
		s.Ahead = n
	}
	return s, name == turns.StageWaiting || name == turns.StageCompiling
}

// PutPluginWith is PutPlugin with options. checks is nil unless the options ask for
// checks.
func (c *Client) PutPluginWith(ctx context.Context, name string, wasm []byte, o PutPluginOptions) (info host.PluginInfo, created bool, checks []Migration, err error) {
	query := url.Values{}
	if o.Check {
		query.Set("check", "true")
	}
	if o.ReplaceWorkflow {
		query.Set("replace_workflow", "true")
	}
	var header map[string]string
	if o.Progress != nil {
		traced, end := tracing(ctx, o.Progress)
		defer end()
		ctx, header = traced, map[string]string{apiwire.HeaderProgress: "true"}
	}
	j, created, err := c.putPlugin(ctx, name, wasm, query, header)
	if err != nil {
		return host.PluginInfo{}, false, nil, err
	}
	if j.Check != nil {
		for i := range *j.Check {
			checks = append(checks, migrationOf(&(*j.Check)[i]))
		}
	}
	return pluginOf(&j), created, checks, nil
}

// PutPluginChecked is PutPlugin. For each workflow of the plugin, it also reports which
// active runs could not continue with the new version.
func (c *Client) PutPluginChecked(ctx context.Context, name string, wasm []byte) (info host.PluginInfo, created bool, checks []Migration, err error) {
	return c.PutPluginWith(ctx, name, wasm, PutPluginOptions{Check: true})
}

// Trial says what an upload would be.
type Trial struct {
	Info      host.PluginInfo  // with the version that it would be
	Unchanged bool             // the newest version has the same bytes
	Changes   []apiwire.Change // from the newest version; nil if the plugin is new
}

// TryPlugin checks a module as [Client.PutPluginWith] does; the server stores nothing. The
// option Check does not apply.
func (c *Client) TryPlugin(ctx context.Context, name string, wasm []byte, o PutPluginOptions) (Trial, error) {
	query := url.Values{"dry_run": {"true"}}
	if o.ReplaceWorkflow {
		query.Set("replace_workflow", "true")
	}
	var header map[string]string
	if o.Progress != nil {
		traced, end := tracing(ctx, o.Progress)
		defer end()
		ctx, header = traced, map[string]string{apiwire.HeaderProgress: "true"}
	}
	j, _, err := c.putPlugin(ctx, name, wasm, query, header)
	if err != nil {
		return Trial{}, err
	}
	if !j.DryRun { // a server from before dry runs has stored it
		return Trial{}, fmt.Errorf("the server does not have dry runs of uploads, and has stored version %d of %s", j.Version, j.Name)
	}
	trial := Trial{Info: pluginOf(&j), Unchanged: j.Unchanged}
	if j.Changes != nil {
		trial.Changes = *j.Changes
	}
	return trial, nil
}

func (c *Client) putPlugin(ctx context.Context, name string, wasm []byte, query url.Values, header map[string]string) (j apiwire.PluginDetails, created bool, err error) {
	if wasm == nil {
		wasm = []byte{}
	}
	a, err := c.do(ctx, request{
		method: http.MethodPut, path: "/plugins/" + url.PathEscape(name), query: query, contentType: "application/wasm", body: wasm, header: header,
	})
	if err != nil {
		return j, false, err
	}
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return j, false, a.failure()
	}
	return j, a.status == http.StatusCreated, a.decode(&j)
}

// Plugin reads the newest version of a plugin.
func (c *Client) Plugin(ctx context.Context, name string) (host.PluginInfo, error) {
	var j apiwire.PluginDetails
	if err := c.getJSON(ctx, "/plugins/"+url.PathEscape(name), nil, &j); err != nil {
		return host.PluginInfo{}, err
	}
	return pluginOf(&j), nil
}

// Plugins lists the newest version of each plugin, by name, without manifests.
func (c *Client) Plugins(ctx context.Context) ([]host.PluginInfo, error) {
	var list apiwire.Plugins
	if err := c.getJSON(ctx, "/plugins", nil, &list); err != nil {
		return nil, err
	}
	return infos(list.Plugins), nil
}

// Versions lists all versions of a plugin, oldest first, without manifests.
func (c *Client) Versions(ctx context.Context, name string) ([]host.PluginInfo, error) {
	var list apiwire.Versions
	if err := c.getJSON(ctx, "/plugins/"+url.PathEscape(name)+"/versions", nil, &list); err != nil {
		return nil, err
	}
	return infos(list.Versions), nil
}

func infos(list []apiwire.Plugin) []host.PluginInfo {
	all := make([]host.PluginInfo, len(list))
	for i := range list {
		all[i] = pluginOf(&apiwire.PluginDetails{Plugin: list[i]})
	}
	return all
}

// Module returns the bytes of the version of a plugin that has the digest; "" is the newest
// version.
func (c *Client) Module(ctx context.Context, name, digest string) ([]byte, error) {
	query := url.Values{}
	if digest != "" {
		query.Set("sha256", digest)
	}
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/plugins/" + url.PathEscape(name) + "/module", query: query})
	return a.body, err
}

// DeletePlugin removes a plugin; CodeConflict while runs use it.
func (c *Client) DeletePlugin(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/plugins/" + url.PathEscape(name)})
	return err
}

// DeletePluginVersion removes a version of a plugin that is not the newest; CodeConflict
// while runs use it.
func (c *Client) DeletePluginVersion(ctx context.Context, name string, version int) error {
	_, err := c.want(ctx, http.StatusNoContent, request{
		method: http.MethodDelete, path: "/plugins/" + url.PathEscape(name), query: url.Values{"version": {strconv.Itoa(version)}},
	})
	return err
}

// Workflows lists the names of the workflows, sorted.
func (c *Client) Workflows(ctx context.Context) ([]string, error) {
	var list apiwire.Workflows
	err := c.getJSON(ctx, "/workflows", nil, &list)
	return list.Workflows, err
}

// WorkflowSummaries lists the workflows with what a list shows of them, by name.
func (c *Client) WorkflowSummaries(ctx context.Context) ([]host.WorkflowSummary, error) {
	var list apiwire.Workflows
	if err := c.getJSON(ctx, "/workflows", url.Values{"details": {"true"}}, &list); err != nil {
		return nil, err
	}
	if list.Details == nil {
		return nil, &host.Error{Code: host.CodeInvalidMessage, Message: "The server's answer has no details: it may be an older version"}
	}
	return apiwire.FillAll[host.WorkflowSummary](*list.Details), nil
}

// Schema reads the JSON Schemas of a workflow's start and stop events. Their
// titles are the types' names.
func (c *Client) Schema(ctx context.Context, name string) (start, stop json.RawMessage, err error) {
	var s struct{ Start, Stop json.RawMessage }
	err = c.getJSON(ctx, workflowPath(name)+"/schema", nil, &s)
	return s.Start, s.Stop, err
}

// Workflow describes a workflow. It takes four requests.
func (c *Client) Workflow(ctx context.Context, name string) (host.WorkflowInfo, error) {
	path := workflowPath(name)
	var about apiwire.Workflow
	var schema apiwire.StartStop
	var events apiwire.EventSchemas
	var drawing apiwire.Drawing
	for _, part := range []struct {
		path string
		v    any
	}{{path, &about}, {path + "/schema", &schema}, {path + "/events", &events}, {path + "/representation", &drawing}} {
		if err := c.getJSON(ctx, part.path, nil, part.v); err != nil {
			return host.WorkflowInfo{}, err
		}
	}
	info := workflowOf(&about)
	info.Description = string(drawing.Graph.Description)
	info.StartType, info.StartSchema = titleOf(schema.Start), abi.Raw(schema.Start)
	info.StopTypes, info.StopSchema = []string{titleOf(schema.Stop)}, abi.Raw(schema.Stop)
	info.Graph = drawing.Graph.Graph()
	for _, schema := range events.Events {
		info.Events = append(info.Events, eventInfo(schema, &info.Graph))
	}
	return info, nil
}

// Diagram returns the steps of the version of a workflow that has the digest, and what
// leads from one to another; "" is the newest version.
func (c *Client) Diagram(ctx context.Context, name, digest string) (d diagram.Diagram, err error) {
	query := url.Values{}
	if digest != "" {
		query.Set("version", digest)
	}
	var body apiwire.Diagram
	if err := c.getJSON(ctx, workflowPath(name)+"/graph", query, &body); err != nil {
		return d, err
	}
	apiwire.Fill(&d, &body)
	return d, nil
}

// titleOf returns the title of a schema, "" if it has none.
func titleOf(schema apiwire.Value) string {
	decoded, _ := abi.DecodeValue(abi.Raw(schema)) // of JSON that was read
	members, _ := decoded.(map[string]any)
	title, _ := members["title"].(string)
	return title
}

// eventInfo describes an event type by its schema and by the graph, which has the type's
// ancestors.
func eventInfo(schema apiwire.Value, g *diagram.Graph) host.EventInfo {
	title := titleOf(schema)
	e := host.EventInfo{Type: title, Schema: abi.Raw(schema)}
	e.Kind, e.Base = abi.BaseKinds[title]
	i := slices.IndexFunc(g.Nodes, func(n diagram.GraphNode) bool { return n.EventType == title })
	if i < 0 || len(g.Nodes[i].EventTypes) == 0 {
		return e
	}
	e.Types = g.Nodes[i].EventTypes[1:]
	for _, ancestor := range e.Types {
		if kind, ok := abi.BaseKinds[ancestor]; ok && e.Kind == abi.KindPlain {
			e.Kind = kind
		}
	}
	return e
}
