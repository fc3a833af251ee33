package host

import "context"

// MaxResourceDefinition bounds the JSON of a resource that is defined by the API, in bytes.
const MaxResourceDefinition = 64 << 10

// ResourceRecord is a resource that a tenant has defined, as a store has it.
type ResourceRecord struct {
	Tenant string
	Name   string
	// Definition is JSON, without what secrets are.
	Definition []byte
	// Sealed is the secrets, encrypted under the key that KeyID names; both are empty
	// if there are none.
	KeyID   string
	Sealed  []byte
	Created int64 // Unix nanoseconds, of the first definition
	Updated int64 // of this one
}

// ResourceUse is what a workflow has used of a resource: it only ever grows.
type ResourceUse struct {
	Tenant       string
	Resource     string
	Workflow     string
	Calls        uint64 // that were answered, or failed
	Failed       uint64 // of these
	Sent         uint64 // bytes of payloads
	Received     uint64 // bytes of answers
	InputTokens  uint64 // that a model was given
	OutputTokens uint64 // that it gave
}

// Add adds what was used besides.
func (u *ResourceUse) Add(o ResourceUse) {
	u.Calls += o.Calls
	u.Failed += o.Failed
	u.Sent += o.Sent
	u.Received += o.Received
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
}

// ResourceStore is the part of a [Store] that keeps resources and their use. What
// holds for a store holds here.
type ResourceStore interface {
	// PutResource stores a definition in place of that of the same name. Of one that
	// is there, Created stays.
	PutResource(ctx context.Context, r ResourceRecord) error
	// DeleteResource removes one with what it keeps and what is known of its use.
	// ErrNotFound.
	DeleteResource(ctx context.Context, tenant, name string) error
	// ResourceRecords reads those of a tenant ("" for all), by tenant and name.
	ResourceRecords(ctx context.Context, tenant string) ([]ResourceRecord, error)
	// AddResourceUse adds what was used, all or nothing.
	AddResourceUse(ctx context.Context, list []ResourceUse) error
	// ResourceUses reads what a tenant's workflows have used, by resource and workflow.
	ResourceUses(ctx context.Context, tenant string) ([]ResourceUse, error)
}

// ResourceInfo is a resource as those see it who may manage it: without secrets.
type ResourceInfo struct {
	Name string
	Kind string
	// File: it is the operator's, from a file. Nothing more is told of it.
	File       bool
	Definition []byte // JSON
	KeyID      string // of the key that seals the secrets; "": there are none
	// Problem says why it cannot be used at the moment; "": it can.
	Problem string
	Created int64 // Unix nanoseconds
	Updated int64
	Uses    []ResourceUse // by workflow
}

// ResourceChange is a definition that somebody gives.
type ResourceChange struct {
	Tenant string
	Name   string
	Text   []byte // JSON, with the secrets
	// Operator: it is the server's own admin who gives it, and who alone may name
	// networks.
	Operator bool
}

// ResourceAdmin manages what a tenant has defined. Its methods may be called from any
// goroutine; their errors are [*Error]s, without any secret.
type ResourceAdmin interface {
	// PutResource defines a resource, at once. CodeInvalidArgument, CodeConflict (the
	// operator's file has it), CodePermissionDenied, CodeFailedPrecondition (secrets
	// without a key), CodeLimitExceeded.
	PutResource(ctx context.Context, c ResourceChange) (info ResourceInfo, created bool, err error)
	// Resource reads one. CodeNotFound.
	Resource(ctx context.Context, tenant, name string) (ResourceInfo, error)
	// Resources lists those that the tenant may use, by name.
	Resources(ctx context.Context, tenant string) ([]ResourceInfo, error)
	// DeleteResource removes one, at once: calls under way get their answer.
	// CodeNotFound, CodeConflict (the operator's file has it).
	DeleteResource(ctx context.Context, tenant, name string) error
	// ResourceKeys reads what a resource of the kind kv keeps for the tenant: what is
	// durable. CodeNotFound, CodeInvalidArgument (of another kind).
	ResourceKeys(ctx context.Context, tenant, name string, q KVQuery) (KVPage, error)
}

// KVPage is a part of what a resource keeps.
type KVPage struct {
	Items  []KVItem
	More   bool // others follow
	Totals KVTotals
}
