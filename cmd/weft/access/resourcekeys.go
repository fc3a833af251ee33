package access

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/client"
)

// keyOptions are the flags of `weft resources keys`.
type keyOptions struct {
	limit  int
	all    bool
	values bool
}

func newResourceKeys() *cobra.Command {
	var o keyOptions
	cmd := &cobra.Command{
		Use:   "keys NAME [PREFIX]",
		Short: "List the keys that a resource of the kind kv keeps",
		Long: `List the keys that a resource of the kind kv keeps for the tenant, in the order of their
bytes. With PREFIX, list only the keys that begin with it. The command needs an API key
with the role admin.`,
		Example: `  weft resources keys cache
  weft resources keys cache rates/ --values
  weft resources keys cache --all --json | jq -r '.keys[].key'`,
		Args: cli.Takes("NAME", "[PREFIX]"),
	}
	f := cmd.Flags()
	f.IntVar(&o.limit, "limit", remote.DefaultListed, "at most `N`, 1 to "+strconv.Itoa(remote.MaxPage))
	f.BoolVar(&o.all, "all", false, "list all, regardless of --limit")
	f.BoolVar(&o.values, "values", false, "show the values too, as JSON")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if o.limit < 1 || o.limit > remote.MaxPage {
			return cli.Usage("--limit %d: must be a number from 1 to %d; --all lists everything", o.limit, remote.MaxPage)
		}
		prefix := ""
		if len(args) > 1 {
			prefix = args[1]
		}
		return listResourceKeys(ctx, r, args[0], prefix, o)
	})
}

func listResourceKeys(ctx context.Context, r *remote.Conn, name, prefix string, o keyOptions) error {
	q := client.ResourceKeyQuery{Prefix: prefix, Values: o.values, Limit: o.limit}
	if o.all {
		q.Limit = remote.MaxPage
	}
	page, err := r.ResourceKeys(ctx, name, q)
	if err != nil {
		return err
	}
	if r.JSON && !o.all {
		return r.PrintAnswer()
	}
	all := page
	for o.all && page.NextCursor != "" {
		q.Cursor = string(page.NextCursor)
		if page, err = r.ResourceKeys(ctx, name, q); err != nil {
			return err
		}
		all.Keys = append(all.Keys, page.Keys...)
		all.NextCursor = page.NextCursor
	}
	if r.JSON {
		return r.PrintJSON(keyListing(&all))
	}
	return printKeys(r, &all, o.values)
}

// keyListing returns the keys in the form of the API's answer, as one page.
func keyListing(page *client.ResourceKeys) []byte {
	text, err := apiwire.Append(nil, page)
	if err != nil {
		panic(err) // decoded JSON can be encoded
	}
	return text
}

func printKeys(r *remote.Conn, page *client.ResourceKeys, values bool) error {
	if len(page.Keys) == 0 {
		r.Note("no keys match, of %s in all", screen.Grouped(uint64(page.TotalKeys)))
		return nil
	}
	t := &screen.Table{Columns: []screen.Column{{Title: "KEY", Elastic: true}, {Title: "VERSION"}}}
	if values {
		t.Columns = append(t.Columns, screen.Column{Title: "VALUE", Elastic: true})
	}
	for _, k := range page.Keys {
		cells := []string{k.Key, strconv.FormatUint(k.Version, 10)}
		if values {
			cells = append(cells, k.Value.String())
		}
		t.Add(cells...)
	}
	if err := r.Print(t.Render(r.Screen)); err != nil {
		return err
	}
	if page.NextCursor != "" {
		r.Note("there are more, of %s in all: --all lists them", screen.Grouped(uint64(page.TotalKeys)))
	}
	return nil
}
