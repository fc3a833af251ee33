package data

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/host/store/postgres"
)

// place is where a store is: in a data directory, or in a PostgreSQL database.
type place struct {
	data  string
	store string // "": in the data directory
}

// Environment variables of the flags of a place.
const (
	dataVar  = "WEFT_DATA"
	storeVar = "WEFT_STORE"
)

// flags adds the flags of a place.
func (p *place) flags(f *pflag.FlagSet, data, store string) {
	f.StringVar(&p.data, "data", defaultData, data)
	f.StringVar(&p.store, "store", "", store+". WEFT_STORE hides its password from lists of processes")
}

// fromEnvironment reports whether the database comes from the environment.
func (p *place) fromEnvironment() bool { return p.store != "" && p.store == os.Getenv(storeVar) }

// settle decides between a directory and a database. A directory on the command line wins
// over a database in the environment.
func (p *place) settle(f *pflag.FlagSet) error {
	if p.store != "" && f.Changed("data") && p.data != os.Getenv(dataVar) {
		if !p.fromEnvironment() {
			return cli.Usage("--data and --store name two places: give one of them")
		}
		p.store = ""
	}
	if p.store != "" && !isURL(p.store) {
		return cli.Usage("--store (or %s) must begin with postgres://", storeVar)
	}
	return nil
}

// isURL reports whether an argument is the address of a PostgreSQL database.
func isURL(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// name names the place in messages, without a password.
func (p *place) name() string { return placeName(p.data, p.store) }

func placeName(data, store string) string {
	if store == "" {
		return data
	}
	return postgres.Describe(store)
}
