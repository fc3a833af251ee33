package host

import "context"

// tenantKey is the key of a context's tenant.
type tenantKey struct{}

// OnBehalf gives a context that says for which tenant work is done, so that who
// does it can share it out fairly. It grants nothing.
func OnBehalf(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// replaceKey is the key of [ReplacingWorkflow].
type replaceKey struct{}

// ReplacingWorkflow gives a context in which [Plugins.Put] may store a version that makes
// another workflow than the plugin's version before.
func ReplacingWorkflow(ctx context.Context) context.Context {
	return context.WithValue(ctx, replaceKey{}, true)
}

// ReplacesWorkflow reports whether a context is one of [ReplacingWorkflow].
func ReplacesWorkflow(ctx context.Context) bool {
	replaces, _ := ctx.Value(replaceKey{}).(bool)
	return replaces
}

// BehalfOf gives the tenant of a context that [OnBehalf] gave; "" is the server
// itself.
func BehalfOf(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}
