package serve

import (
	"fmt"
	"os"
	"strings"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/host/store/postgres"
)

// storeVar is the environment variable from which the flag has its default.
const storeVar = "WEFT_STORE"

// Values of --durability.
const (
	durabilityLocal   = "local"
	durabilityReplica = "replica"
)

// checkDurability refuses a durability that does not exist, or that the store does not have.
func checkDurability(durability, address string) error {
	switch {
	case durability != durabilityLocal && durability != durabilityReplica:
		return cli.Usage("--durability %q: must be %s or %s", durability, durabilityLocal, durabilityReplica)
	case durability == durabilityReplica && address == "":
		return cli.Usage("--durability %s needs --store postgres://...: only PostgreSQL has replicas", durabilityReplica)
	}
	return nil
}

// checkStore refuses an address that is not one of PostgreSQL. It removes the address from
// the environment, because processes that the server starts do not need its password.
func checkStore(address string) error {
	if err := os.Unsetenv(storeVar); err != nil {
		return fmt.Errorf("take %s out of the environment: %w", storeVar, err)
	}
	if address == "" || strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://") {
		return nil
	}
	return cli.Usage("--store (or %s) must begin with postgres://", storeVar)
}

// storeName names what a server keeps its data in, in messages.
func storeName(data, address string) string {
	if address == "" {
		return data
	}
	return postgres.Describe(address)
}
