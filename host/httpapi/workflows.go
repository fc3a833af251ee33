package httpapi

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
)

// listWorkflows answers the names of the workflows.
func (s *Server) listWorkflows(c echo.Context) error {
	names, err := s.cfg.Plugins.Workflows(c.Request().Context(), tenantOf(c))
	if err != nil {
		return err
	}
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		dst = append(dst, `{"workflows":`...)
		dst = appendStrings(dst, names)
		return append(dst, '}'), nil
	})
}

// workflow looks up the workflow that the path names.
func (s *Server) workflow(c echo.Context) (host.WorkflowInfo, error) {
	info, err := s.cfg.Plugins.Workflow(c.Request().Context(), tenantOf(c), param(c, "name"))
	return info, orNotFound(err, textWorkflowNotFound)
}

// getWorkflow answers what a workflow is made of.
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
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		dst, err := appendSchema(append(dst, `{"start":`...), info.StartSchema, info.StartType)
		if err != nil {
			return dst, err
		}
		dst, err = appendSchema(append(dst, `,"stop":`...), info.StopSchema, stop)
		return append(dst, '}'), err
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
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		dst = append(dst, `{"events":[`...)
		for i, e := range info.Events {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = appendSchema(dst, e.Schema, e.Type); err != nil {
				return dst, err
			}
		}
		return append(dst, "]}"...), nil
	})
}

// appendSchema appends a JSON Schema that has a title.
func appendSchema(dst []byte, schema abi.Raw, title string) ([]byte, error) {
	if len(schema) == 0 || cbor.Major(schema[0]) != cbor.Map {
		dst = append(dst, `{"properties":{},"title":`...)
		dst = appendString(dst, title)
		return append(dst, `,"type":"object"}`...), nil
	}
	if lookup(schema, "title") != nil {
		return appendRaw(dst, schema)
	}
	dst = append(dst, `{"title":`...)
	dst = appendString(dst, title)
	open := len(dst)
	dst, err := appendRaw(dst, schema)
	if err != nil {
		return dst, err
	}
	if string(dst[open:]) == "{}" {
		return append(dst[:open], '}'), nil
	}
	dst[open] = ',' // in the place of the schema's own brace
	return dst, nil
}

// workflowGraph answers the drawing of a workflow.
func (s *Server) workflowGraph(c echo.Context) error {
	info, err := s.workflow(c)
	if err != nil {
		return err
	}
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		return appendGraph(dst, &info)
	})
}

func appendGraph(dst []byte, info *host.WorkflowInfo) ([]byte, error) {
	dst = append(dst, `{"graph":{"name":`...)
	dst = appendString(dst, info.Name)
	dst = append(dst, `,"nodes":[`...)
	for i := range info.Graph.Nodes {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendNode(dst, &info.Graph.Nodes[i]); err != nil {
			return dst, err
		}
	}
	dst = append(dst, `],"edges":[`...)
	for i, edge := range info.Graph.Edges {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"source":`...)
		dst = appendString(dst, edge.Source)
		dst = append(dst, `,"target":`...)
		dst = appendString(dst, edge.Target)
		dst = append(dst, `,"label":`...)
		dst = append(appendStringOrNull(dst, edge.Label), '}')
	}
	dst = append(dst, `],"description":`...)
	dst = appendStringOrNull(dst, info.Description)
	return append(dst, "}}"...), nil
}

func appendNode(dst []byte, n *host.GraphNode) ([]byte, error) {
	dst = append(dst, `{"id":`...)
	dst = appendString(dst, n.ID)
	dst = append(dst, `,"label":`...)
	dst = appendString(dst, n.Label)
	dst = append(dst, `,"node_type":`...)
	dst = appendString(dst, n.Kind)
	switch n.Kind {
	case "step":
		dst = append(dst, `,"description":`...)
		dst = appendStringOrNull(dst, n.Description)
	case "event":
		dst = append(dst, `,"event_type":`...)
		dst = appendString(dst, n.EventType)
		dst = append(dst, `,"event_types":`...)
		dst = appendStrings(dst, lineage(n))
		dst = append(dst, `,"event_schema":`...)
		var err error
		if dst, err = appendSchema(dst, n.Schema, n.EventType); err != nil {
			return dst, err
		}
		dst = append(dst, `,"produced_by":`...)
		dst = appendStrings(dst, n.ProducedBy)
	}
	return append(dst, '}'), nil
}

// lineage gives a node's event type and then its ancestors.
func lineage(n *host.GraphNode) []string {
	if len(n.EventTypes) > 0 && n.EventTypes[0] == n.EventType {
		return n.EventTypes
	}
	return append([]string{n.EventType}, n.EventTypes...)
}
