// Package behalf carries in a context for which tenant work is done, and what the caller
// allows.
//
// It must not know what the work is.
package behalf

import "context"

// tenantKey is the key of a context's tenant.
type tenantKey struct{}

// With gives a context that says for which tenant work is done, so that who
// does it can share it out fairly. It grants nothing.
func With(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// replaceKey is the key of [ReplacingWorkflow].
type replaceKey struct{}

// ReplacingWorkflow gives a context in which an upload may store a version that makes
// another workflow than the plugin's version before.
func ReplacingWorkflow(ctx context.Context) context.Context {
	return context.WithValue(ctx, replaceKey{}, true)
}

// ReplacesWorkflow reports whether a context is one of [ReplacingWorkflow].
func ReplacesWorkflow(ctx context.Context) bool {
	replaces, _ := ctx.Value(replaceKey{}).(bool)
	return replaces
}

// Of gives the tenant of a context that [With] gave; "" is the server
// itself.
func Of(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}
