package access

import (
	"regexp"
	"time"
)

// tenantName is what a tenant may be called.
var tenantName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// TenantNameRule says what a tenant may be called, for messages.
const TenantNameRule = "[a-z0-9][a-z0-9._-]{0,63}"

// ValidTenantName reports whether a tenant may be called so.
func ValidTenantName(name string) bool { return tenantName.MatchString(name) }

// Bounds of tenants and keys.
const (
	MaxTenants      = 10_000
	MaxKeys         = 1_000 // of a tenant, those that are revoked included
	MaxKeyNameBytes = 200
	MaxRotateGrace  = 30 * 24 * time.Hour
)
