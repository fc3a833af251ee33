package calls

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// NoResources are the resources of a server that has none: it grants nothing.
type NoResources struct{}

// Grant implements host.Resources.
func (NoResources) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	return host.ResourceGrant{}, host.Errorf(host.CodePermissionDenied, "the resource '%s' (kind %s) is not granted to workflow '%s': this server has no resources", decl.Name, decl.Kind, user.Workflow)
}

// Call implements host.Resources.
func (NoResources) Call(context.Context, host.ResourceCall) (abi.Raw, *abi.Error) {
	return nil, &abi.Error{Code: string(host.CodePermissionDenied), Message: "this server has no resources"}
}

// Operate implements host.Resources.
func (NoResources) Operate(host.ResourceCall, kv.Space, kv.Data) kv.Answer {
	return kv.Answer{Err: &abi.Error{Code: string(host.CodePermissionDenied), Message: "this server has no resources"}}
}
