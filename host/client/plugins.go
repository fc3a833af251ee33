package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/turns"
)

// pluginJSON is a plugin as the API writes it.
type pluginJSON struct {
	Name      string          `json:"name"`
	Workflow  string          `json:"workflow"`
	Version   int             `json:"version"`
	SHA256    string          `json:"sha256"`
	Rewritten string          `json:"rewritten_sha256"`
	Size      int             `json:"size"`
	Manifest  json.RawMessage `json:"manifest"`
	Imports   []string        `json:"imports"`
	Created   time.Time       `json:"created_at"`
	Runs      int             `json:"runs"`
	HeldBy    []struct {
		Workflow string `json:"workflow"`
		Version  string `json:"version"`
		Runs     int    `json:"runs"`
	} `json:"held_by"`
	Composed []string        `json:"composed_in"`
	Check    []migrationJSON `json:"check"`
}

func (j *pluginJSON) info() (host.PluginInfo, error) {
	manifest, err := rawOf(j.Manifest)
	if len(j.Composed) == 0 {
		j.Composed = nil
	}
	var heldBy []host.VersionRuns
	for _, held := range j.HeldBy {
		heldBy = append(heldBy, host.VersionRuns(held))
	}
	return host.PluginInfo{
		Name: j.Name, Workflow: j.Workflow, Version: j.Version, SHA256: j.SHA256, RewrittenSHA256: j.Rewritten,
		Size: j.Size, Manifest: manifest, Imports: j.Imports, Created: j.Created.UTC(), Runs: j.Runs, HeldBy: heldBy, ComposedIn: j.Composed,
	}, err
}

// rawOf encodes JSON; nothing and null are nil.
func rawOf(text json.RawMessage) (abi.Raw, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	raw, err := abi.FromJSON(text)
	if err != nil {
		return nil, &host.Error{Code: host.CodeInvalidMessage, Message: "The server's answer is not understood: " + err.Error(), Cause: err}
	}
	return raw, nil
}

// PutPlugin uploads a version of a plugin. created is false when the same
// bytes are the newest version already.
//
// # Errors
//
// CodeInvalidPlugin with all Problems, CodeConflict, CodeInvalidArgument,
// CodeTooLarge, CodePermissionDenied.
func (c *Client) PutPlugin(ctx context.Context, name string, wasm []byte) (info host.PluginInfo, created bool, err error) {
	j, created, err := c.putPlugin(ctx, name, wasm, nil, nil)
	if err != nil {
		return host.PluginInfo{}, false, err
	}
	info, err = j.info()
	return info, created, err
}

// PutPluginOptions say how a plugin is uploaded.
type PutPluginOptions struct {
	Check           bool // see [Client.PutPluginChecked]
	ReplaceWorkflow bool // the version may make another workflow than the one before
	// Progress, if not nil, is called with each stage of the upload, from a goroutine of
	// the connection, and not after the call has ended. If the server or a proxy before it
	// does not report stages, only StageSending and StageSent come.
	Progress func(turns.Stage)
}

// Stages of an upload before those of [turns.Turn].
const (
	StageSending = "sending" // the module is on its way
	StageSent    = "sent"    // the server has it, and checks it
)

// tracing gives a context whose request tells its stages, and the end of that.
func tracing(ctx context.Context, progress func(turns.Stage)) (traced context.Context, end func()) {
	var mu sync.Mutex // guards the fields below, and the order of the stages
	ended, answered := false, false
	tell := func(s turns.Stage) {
		mu.Lock()
		defer mu.Unlock()
		if ended || answered && s.Name == StageSent { // the connection's two ends hear of it in any order
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
			if s, ok := stageOf(header.Get(headerProgress)); ok {
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

// headerProgress asks for interim answers, and has the stage in these.
const headerProgress = "X-Weft-Progress"

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

// PutPluginWith is PutPlugin with options; checks are nil unless they are asked for.
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
		ctx, header = traced, map[string]string{headerProgress: "true"}
	}
	j, created, err := c.putPlugin(ctx, name, wasm, query, header)
	if err != nil {
		return host.PluginInfo{}, false, nil, err
	}
	for i := range j.Check {
		checks = append(checks, j.Check[i].migration())
	}
	info, err = j.info()
	return info, created, checks, err
}

// PutPluginChecked is PutPlugin, and says for each workflow of the plugin which of
// its runs under way could not go on with the new version.
func (c *Client) PutPluginChecked(ctx context.Context, name string, wasm []byte) (info host.PluginInfo, created bool, checks []Migration, err error) {
	return c.PutPluginWith(ctx, name, wasm, PutPluginOptions{Check: true})
}

func (c *Client) putPlugin(ctx context.Context, name string, wasm []byte, query url.Values, header map[string]string) (j pluginJSON, created bool, err error) {
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
	var j pluginJSON
	if err := c.getJSON(ctx, "/plugins/"+url.PathEscape(name), nil, &j); err != nil {
		return host.PluginInfo{}, err
	}
	return j.info()
}

// Plugins lists the newest version of each plugin, by name, without manifests.
func (c *Client) Plugins(ctx context.Context) ([]host.PluginInfo, error) {
	var list struct {
		Plugins []pluginJSON `json:"plugins"`
	}
	if err := c.getJSON(ctx, "/plugins", nil, &list); err != nil {
		return nil, err
	}
	return infos(list.Plugins)
}

// Versions lists all versions of a plugin, oldest first, without manifests.
func (c *Client) Versions(ctx context.Context, name string) ([]host.PluginInfo, error) {
	var list struct {
		Versions []pluginJSON `json:"versions"`
	}
	if err := c.getJSON(ctx, "/plugins/"+url.PathEscape(name)+"/versions", nil, &list); err != nil {
		return nil, err
	}
	return infos(list.Versions)
}

func infos(list []pluginJSON) ([]host.PluginInfo, error) {
	all := make([]host.PluginInfo, len(list))
	for i := range list {
		var err error
		if all[i], err = list[i].info(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// DeletePlugin removes a plugin; CodeConflict while runs hold it.
func (c *Client) DeletePlugin(ctx context.Context, name string) error {
	_, err := c.want(ctx, http.StatusNoContent, request{method: http.MethodDelete, path: "/plugins/" + url.PathEscape(name)})
	return err
}

// DeletePluginVersion removes a version of a plugin that is not its newest;
// CodeConflict while runs hold it.
func (c *Client) DeletePluginVersion(ctx context.Context, name string, version int) error {
	_, err := c.want(ctx, http.StatusNoContent, request{
		method: http.MethodDelete, path: "/plugins/" + url.PathEscape(name), query: url.Values{"version": {strconv.Itoa(version)}},
	})
	return err
}

// Workflows lists the names of the workflows, sorted.
func (c *Client) Workflows(ctx context.Context) ([]string, error) {
	var list struct {
		Workflows []string `json:"workflows"`
	}
	err := c.getJSON(ctx, "/workflows", nil, &list)
	return list.Workflows, err
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
	var about aboutJSON
	var schema struct{ Start, Stop json.RawMessage }
	var events struct{ Events []json.RawMessage }
	var drawing struct{ Graph graphJSON }
	for _, part := range []struct {
		path string
		v    any
	}{{path, &about}, {path + "/schema", &schema}, {path + "/events", &events}, {path + "/representation", &drawing}} {
		if err := c.getJSON(ctx, part.path, nil, part.v); err != nil {
			return host.WorkflowInfo{}, err
		}
	}
	info, err := about.info()
	if err != nil {
		return info, err
	}
	info.Description = drawing.Graph.Description
	if info.StartType, info.StartSchema, err = titled(schema.Start); err != nil {
		return info, err
	}
	stopType, stopSchema, err := titled(schema.Stop)
	if err != nil {
		return info, err
	}
	info.StopTypes, info.StopSchema = []string{stopType}, stopSchema
	if info.Graph, err = drawing.Graph.graph(); err != nil {
		return info, err
	}
	for _, text := range events.Events {
		e, err := eventInfo(text, &info.Graph)
		if err != nil {
			return info, err
		}
		info.Events = append(info.Events, e)
	}
	return info, nil
}

// titled encodes a schema and gives its title.
func titled(text json.RawMessage) (title string, schema abi.Raw, err error) {
	var t struct {
		Title string `json:"title"`
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return "", nil, &host.Error{Code: host.CodeInvalidMessage, Message: "The server's schema is not understood: " + err.Error(), Cause: err}
	}
	schema, err = rawOf(text)
	return t.Title, schema, err
}

// eventInfo describes an event type by its schema and its place in the graph,
// which knows the ancestors.
func eventInfo(text json.RawMessage, g *host.Graph) (host.EventInfo, error) {
	title, schema, err := titled(text)
	if err != nil {
		return host.EventInfo{}, err
	}
	e := host.EventInfo{Type: title, Schema: schema}
	e.Kind, e.Base = abi.BaseKinds[title]
	i := slices.IndexFunc(g.Nodes, func(n host.GraphNode) bool { return n.EventType == title })
	if i < 0 || len(g.Nodes[i].EventTypes) == 0 {
		return e, nil
	}
	e.Types = g.Nodes[i].EventTypes[1:]
	for _, ancestor := range e.Types {
		if kind, ok := abi.BaseKinds[ancestor]; ok && e.Kind == abi.KindPlain {
			e.Kind = kind
		}
	}
	return e, nil
}

// graphJSON is a graph as the API writes it.
type graphJSON struct {
	Description string `json:"description"`
	Nodes       []struct {
		ID          string          `json:"id"`
		Label       string          `json:"label"`
		Kind        string          `json:"node_type"`
		Description string          `json:"description"`
		EventType   string          `json:"event_type"`
		EventTypes  []string        `json:"event_types"`
		Schema      json.RawMessage `json:"event_schema"`
		ProducedBy  []string        `json:"produced_by"`
	} `json:"nodes"`
	Edges []struct {
		Source string `json:"source"`
		Target string `json:"target"`
		Label  string `json:"label"`
	} `json:"edges"`
}

func (j *graphJSON) graph() (host.Graph, error) {
	var g host.Graph
	for _, n := range j.Nodes {
		schema, err := rawOf(n.Schema)
		if err != nil {
			return g, err
		}
		g.Nodes = append(g.Nodes, host.GraphNode{
			ID: n.ID, Label: n.Label, Kind: n.Kind, Description: n.Description,
			EventType: n.EventType, EventTypes: n.EventTypes, Schema: schema, ProducedBy: n.ProducedBy,
		})
	}
	for _, e := range j.Edges {
		g.Edges = append(g.Edges, host.GraphEdge{Source: e.Source, Target: e.Target, Label: e.Label})
	}
	return g, nil
}
