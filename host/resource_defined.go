package host

import (
	"context"

	"github.com/weftrun/weft/host/kv"
)

// ResourceRecord is a resource that a tenant has defined, in a store.
type ResourceRecord struct {
	Tenant string
	Name   string
	// Definition is JSON without the values of secrets.
	Definition []byte
	// Sealed has the secrets, encrypted with the key that KeyID names; both are empty if
	// there are no secrets.
	KeyID   string
	Sealed  []byte
	Created int64 // Unix nanoseconds, of the first definition
	Updated int64 // of the current definition
}

// ResourceUse is what a workflow has used of a resource. It only increases.
type ResourceUse struct {
	Tenant       string
	Resource     string
	Workflow     string
	Calls        uint64 // calls with an answer or an error
	Failed       uint64 // of Calls
	Sent         uint64 // bytes of payloads
	Received     uint64 // bytes of answers
	InputTokens  uint64 // sent to a model
	OutputTokens uint64 // received from a model
}

// Add adds further use.
func (u *ResourceUse) Add(o ResourceUse) {
	u.Calls += o.Calls
	u.Failed += o.Failed
	u.Sent += o.Sent
	u.Received += o.Received
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
}

// ResourceStore is the part of a [Store] that keeps resources and their use. The rules of
// [Store] apply.
type ResourceStore interface {
	// PutResource stores a definition, and replaces the definition of the same name. It
	// keeps Created of the replaced definition.
	PutResource(ctx context.Context, r ResourceRecord) error
	// DeleteResource removes a resource with its data and the record of its use.
	// ErrNotFound.
	DeleteResource(ctx context.Context, tenant, name string) error
	// ResourceRecords reads the resources of a tenant ("" for all), by tenant and name.
	ResourceRecords(ctx context.Context, tenant string) ([]ResourceRecord, error)
	// AddResourceUse adds all of the use, or nothing.
	AddResourceUse(ctx context.Context, list []ResourceUse) error
	// ResourceUses reads what a tenant's workflows have used, by resource and workflow.
	ResourceUses(ctx context.Context, tenant string) ([]ResourceUse, error)
}

// ResourceInfo is a resource without its secrets, for those who manage it.
type ResourceInfo struct {
	Name string
	Kind string
	// File says that the resource comes from the operator's file. Then only Name,
	// Kind and Uses are set.
	File       bool
	Definition []byte // JSON
	KeyID      string // of the key that encrypts the secrets; "": no secrets
	// Problem says why the resource cannot be used at the moment; "": it can be used.
	Problem string
	Created int64 // Unix nanoseconds
	Updated int64
	Uses    []ResourceUse // by workflow
}

// ResourceChange is a new definition.
type ResourceChange struct {
	Tenant string
	Name   string
	Text   []byte // JSON, with the secrets
	// Operator says that the definition comes from the server's own admin, who alone may
	// name networks.
	Operator bool
}

// ResourceAdmin manages the resources that tenants define. Its methods may be called from
// any goroutine; their errors are [*Error]s without secrets.
type ResourceAdmin interface {
	// PutResource defines a resource at once. CodeInvalidArgument, CodeConflict (the
	// operator's file has it), CodePermissionDenied, CodeFailedPrecondition (secrets
	// without a key), CodeLimitExceeded.
	PutResource(ctx context.Context, c ResourceChange) (info ResourceInfo, created bool, err error)
	// Resource reads a resource. CodeNotFound.
	Resource(ctx context.Context, tenant, name string) (ResourceInfo, error)
	// Resources lists the resources that the tenant may use, by name.
	Resources(ctx context.Context, tenant string) ([]ResourceInfo, error)
	// DeleteResource removes a resource at once; calls in progress still get their
	// answers. CodeNotFound, CodeConflict (the operator's file has it).
	DeleteResource(ctx context.Context, tenant, name string) error
	// ResourceKeys reads the durable data that a resource of kind kv keeps for the
	// tenant. CodeNotFound, CodeInvalidArgument (the resource is of another kind).
	ResourceKeys(ctx context.Context, tenant, name string, q kv.Query) (kv.Page, error)
}
