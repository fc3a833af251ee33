package serve

import (
	"fmt"
	"os"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/host/resource"
)

// The largest sizes of a file of resources and of a file with a secret, in bytes.
const (
	maxResourceFile = 4 << 20
	maxSecretFile   = 64 << 10
)

// readResources reads a file of resources; "" means no resources.
func readResources(file string) (*resource.Table, error) {
	text := []byte("{}")
	if file != "" {
		var err error
		if text, err = cli.ReadBounded(file, maxResourceFile); err != nil {
			return nil, fmt.Errorf("--resources: %w", err)
		}
	}
	t, err := resource.ParseFile(text, resource.Sources{
		Env:      os.LookupEnv,
		ReadFile: func(name string) ([]byte, error) { return cli.ReadBounded(name, maxSecretFile) },
	})
	if err != nil {
		return nil, fmt.Errorf("--resources %s: %w", file, err)
	}
	return t, nil
}

// readResourceKeys reads the keys that encrypt secrets, from a file or the environment;
// nil if there are none.
func readResourceKeys(file string) (*resource.Keys, error) {
	text, where := os.Getenv("WEFT_RESOURCE_KEY"), "WEFT_RESOURCE_KEY"
	if file != "" {
		b, err := cli.ReadBounded(file, maxSecretFile)
		if err != nil {
			return nil, fmt.Errorf("--resource-key-file: %w", err)
		}
		text, where = string(b), "--resource-key-file "+file
	}
	if text == "" && file == "" {
		return nil, nil
	}
	keys, err := resource.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return keys, nil
}
