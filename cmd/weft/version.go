package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// versionWait is how long `weft version` waits for the server.
const versionWait = 2 * time.Second

// versions is the output of `weft version`.
type versions struct {
	Client struct {
		Version  string `json:"version"`
		Go       string `json:"go"`
		Platform string `json:"platform"`
	} `json:"client"`
	// Server is nil if the server does not answer.
	Server *serverVersion `json:"server"`
}

type serverVersion struct {
	Address string `json:"address"`
	Version string `json:"version"` // "": unknown
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the versions of weft and of the server, if it can be reached",
		Example: `  weft version --json | jq -r .server.version`,
		Args:    cli.Takes(),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, _ []string) error {
		var v versions
		v.Client.Version = cli.Version
		v.Client.Go = runtime.Version()
		v.Client.Platform = runtime.GOOS + "/" + runtime.GOARCH
		v.Server = askVersion(ctx, r)
		if r.JSON {
			text, err := json.Marshal(v)
			if err != nil {
				return err
			}
			return r.PrintJSON(text)
		}
		return r.Print(v.text(r.Address))
	})
}

// askVersion reads the server's version from the header of its answers; nil if the server
// does not answer.
func askVersion(ctx context.Context, r *remote.Conn) *serverVersion {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	// An unhealthy server has a version, too.
	if err := r.Health(ctx); err != nil && r.Header() == nil {
		return nil
	}
	name, number, _ := strings.Cut(r.Header().Get("Server"), "/")
	if name != "weft" {
		number = ""
	}
	return &serverVersion{Address: r.Address, Version: number}
}

func (v *versions) text(server string) string {
	text := fmt.Sprintf("weft %s (%s, %s)\n", v.Client.Version, v.Client.Go, v.Client.Platform)
	switch {
	case v.Server == nil:
		return text + "no server listens at " + server + "\n"
	case v.Server.Version == "":
		return text + "the server at " + server + " does not tell its version\n"
	}
	return text + "server " + screen.Printable(v.Server.Version) + " at " + server + "\n"
}
