// Package behalf carries in a context the tenant for which work is done, and what the
// caller allows.
//
// It does not depend on the kind of work.
package behalf

import "context"

// tenantKey is the key of a context's tenant.
type tenantKey struct{}

// With returns a context with the tenant for which work is done. Services use the tenant
// to share work fairly. The context grants no rights.
func With(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// replaceKey is the key of [ReplacingWorkflow].
type replaceKey struct{}

// ReplacingWorkflow returns a context in which an upload may store a version whose
// workflow has another name than the workflow of the plugin's previous version.
func ReplacingWorkflow(ctx context.Context) context.Context {
	return context.WithValue(ctx, replaceKey{}, true)
}

// ReplacesWorkflow reports whether a context comes from [ReplacingWorkflow].
func ReplacesWorkflow(ctx context.Context) bool {
	replaces, _ := ctx.Value(replaceKey{}).(bool)
	return replaces
}

// dryKey is the key of [DryRun].
type dryKey struct{}

// DryRun returns a context in which an upload is checked, and nothing is stored.
func DryRun(ctx context.Context) context.Context {
	return context.WithValue(ctx, dryKey{}, true)
}

// IsDryRun reports whether a context comes from [DryRun].
func IsDryRun(ctx context.Context) bool {
	dry, _ := ctx.Value(dryKey{}).(bool)
	return dry
}

// Of returns the tenant of a context from [With]; "" is the server itself.
func Of(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}
