package httpapi

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/diagram"
	"github.com/weftrun/weft/host/httpapi/object"
)

// listWorkflows answers the names of the workflows, and with details=true what a list shows
// of them.
func (s *Server) listWorkflows(c echo.Context) error {
	details, err := flagOf(c.QueryParams(), "details", false)
	if err != nil {
		return err
	}
	if details {
		return s.listSummaries(c)
	}
	names, err := s.cfg.Plugins.Workflows(c.Request().Context(), tenantOf(c))
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, &apiwire.Workflows{Workflows: names})
}

func (s *Server) listSummaries(c echo.Context) error {
	list, err := s.cfg.Plugins.Summaries(c.Request().Context(), tenantOf(c))
	if err != nil {
		return err
	}
	shown := apiwire.FillAll[apiwire.WorkflowSummary](list)
	out := apiwire.Workflows{Workflows: make([]string, len(list)), Details: &shown}
	for i := range list {
		out.Workflows[i] = list[i].Name
	}
	return answer(c, http.StatusOK, &out)
}

// workflow looks up the workflow that the path names.
func (s *Server) workflow(c echo.Context) (host.WorkflowInfo, error) {
	info, err := s.cfg.Plugins.Workflow(c.Request().Context(), tenantOf(c), param(c, "name"))
	return info, orNotFound(err, textWorkflowNotFound)
}

// getWorkflow answers the description of a workflow.
func (s *Server) getWorkflow(c echo.Context) error {
	info, err := s.workflow(c)
	if err != nil {
		return err
	}
	return s.answerWorkflow(c, http.StatusOK, &info)
}

// workflowSchema answers the schemas of the start and stop events.
func (s *Server) workflowSchema(c echo.Context) error {
	info, err := s.workflow(c)
	if err != nil {
		return err
	}
	stop := abi.TypeStop
	if len(info.StopTypes) > 0 {
		stop = info.StopTypes[0]
	}
	return answer(c, http.StatusOK, &apiwire.StartStop{
		Start: titled(info.StartSchema, info.StartType), Stop: titled(info.StopSchema, stop),
	})
}

// workflowEvents answers the schemas of all events.
func (s *Server) workflowEvents(c echo.Context) error {
	info, err := s.workflow(c)
	if host.CodeOf(err) == host.CodeNotFound {
		return orNotFound(err, fmt.Sprintf("Workflow '%s' not found", clip(param(c, "name"))))
	}
	if err != nil {
		return err
	}
	out := apiwire.EventSchemas{Events: make([]apiwire.Value, len(info.Events))}
	for i, e := range info.Events {
		out.Events[i] = titled(e.Schema, e.Type)
	}
	return answer(c, http.StatusOK, &out)
}

// titled returns a JSON Schema with a title.
func titled(schema abi.Raw, title string) apiwire.Value {
	if len(schema) == 0 || cbor.Major(schema[0]) != cbor.Map {
		schema = emptySchema
	}
	if object.Lookup(schema, "title") != nil {
		return apiwire.Value(schema)
	}
	head := cbor.AppendText(cbor.AppendHead(nil, cbor.Map, 1), "title")
	return apiwire.Value(object.Merge(cbor.AppendText(head, title), schema, ""))
}

// emptySchema is the schema of an event that declares no fields.
var emptySchema = func() abi.Raw {
	raw, err := abi.FromJSON([]byte(`{"properties":{},"type":"object"}`))
	if err != nil {
		panic(err) // the text is valid JSON
	}
	return raw
}()

// workflowGraph answers the drawing of a workflow.
func (s *Server) workflowGraph(c echo.Context) error {
	info, err := s.workflow(c)
	if err != nil {
		return err
	}
	drawing := apiwire.Drawing{Graph: apiwire.Graph{Name: info.Name, Description: apiwire.OrNull(info.Description)}}
	apiwire.Fill(&drawing.Graph, &info.Graph)
	for i := range info.Graph.Nodes {
		drawing.Graph.Nodes = append(drawing.Graph.Nodes, showNode(&info.Graph.Nodes[i]))
	}
	return answer(c, http.StatusOK, &drawing)
}

// workflowDiagram answers the nodes and edges of a version of a workflow.
func (s *Server) workflowDiagram(c echo.Context) error {
	digest := strings.ToLower(c.QueryParam("version"))
	if digest != "" && !wholeVersion.MatchString(digest) {
		return invalid("Invalid version: '%s'. It must be the digest of a version, in 64 hexadecimal digits", clip(digest))
	}
	d, err := s.cfg.Plugins.Diagram(c.Request().Context(), tenantOf(c), param(c, "name"), digest)
	if err != nil {
		return orNotFound(err, textWorkflowNotFound)
	}
	var out apiwire.Diagram
	apiwire.Fill(&out, &d)
	return answer(c, http.StatusOK, &out)
}

// wholeVersion matches the digest of a version.
var wholeVersion = regexp.MustCompile(`^[0-9a-f]{64}$`)

func showNode(n *diagram.GraphNode) apiwire.Node {
	var out apiwire.Node
	apiwire.Fill(&out, n)
	switch n.Kind {
	case "step":
		out.StepNode = &apiwire.StepNode{}
		apiwire.Fill(out.StepNode, n)
	case "event":
		out.EventNode = &apiwire.EventNode{}
		apiwire.Fill(out.EventNode, n)
		out.EventTypes = lineage(n)
		out.Schema = titled(n.Schema, n.EventType)
	}
	return out
}

// lineage returns a node's event type, followed by its ancestors.
func lineage(n *diagram.GraphNode) []string {
	if len(n.EventTypes) > 0 && n.EventTypes[0] == n.EventType {
		return n.EventTypes
	}
	return append([]string{n.EventType}, n.EventTypes...)
}
