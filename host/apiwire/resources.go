package apiwire

import (
	"encoding/json"

	"github.com/weftrun/weft/host"
)

// Resources is a list of resources.
type Resources struct {
	Resources []Resource `json:"resources"`
}

// Resource is a resource without its secrets; see [host.ResourceInfo].
type Resource struct {
	_      struct{} `doc:"A resource, without its secrets."`
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Source string   `json:"source" api:"enum=file|api" doc:"file: defined by the operator; its definition is not shown." fill:"-"`
	*Defined
	Uses []ResourceUse `json:"usage" doc:"By workflow."`
}

// Defined has the additional fields of a resource that a tenant has defined.
type Defined struct {
	Definition json.RawMessage `json:"definition" api:"object" doc:"As it was given, without secrets."`
	KeyID      OrNull          `json:"key_id" doc:"Of the key that seals the secrets; null: there are none."`
	Problem    OrNull          `json:"problem" doc:"Why the resource cannot be used at the moment."`
	Created    Time            `json:"created_at"`
	Updated    Time            `json:"updated_at"`
}

// ResourceUse is what a workflow has used of a resource; see [host.ResourceUse].
type ResourceUse struct {
	_            struct{} `doc:"What a workflow has used of a resource."`
	Workflow     string   `json:"workflow"`
	Calls        uint64   `json:"calls"`
	Failed       uint64   `json:"failed"`
	Sent         uint64   `json:"sent_bytes"`
	Received     uint64   `json:"received_bytes"`
	InputTokens  uint64   `json:"input_tokens"`
	OutputTokens uint64   `json:"output_tokens"`
}

// Show sets the fields from the information on a resource.
func (r *Resource) Show(of *host.ResourceInfo) {
	Fill(r, of)
	if r.Source = "file"; !of.File {
		r.Source, r.Defined = "api", &Defined{}
		Fill(r.Defined, of)
	}
}

// Info returns the resource as the host's type.
func (r *Resource) Info() host.ResourceInfo {
	out := host.ResourceInfo{File: r.Source == "file"}
	Fill(&out, r)
	if r.Defined != nil {
		Fill(&out, r.Defined)
	}
	for i := range out.Uses {
		out.Uses[i].Resource = r.Name
	}
	return out
}

// ResourceKeys is a page of the data that a resource keeps.
type ResourceKeys struct {
	_          struct{}      `doc:"A part of what a resource keeps."`
	Keys       []ResourceKey `json:"keys"`
	NextCursor OrNull        `json:"next_cursor" doc:"Where the next page begins; null at the end."`
	TotalKeys  int64         `json:"total_keys" doc:"The number of all its keys."`
	TotalBytes int64         `json:"total_bytes" doc:"The size of all its keys and values."`
}

// ResourceKey is a key that a resource keeps; see [kv.Item].
type ResourceKey struct {
	_       struct{} `doc:"A key."`
	Key     string   `json:"key"`
	Version uint64   `json:"version" api:"min=1" doc:"The version of its value, which is unique."`
	Value   Value    `json:"value,omitempty" doc:"If values were asked for."`
}
