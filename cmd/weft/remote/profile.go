package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weftrun/weft/cmd/weft/cli"
)

// Profile is a server with the key for it. A key is sent to its own server only.
type Profile struct {
	Server string `json:"server"`
	Key    string `json:"key,omitempty"`
}

// Profiles is the file of profiles in the user's configuration directory. It holds
// keys: nobody but the user may read it.
type Profiles struct {
	Current  string             `json:"current"` // used where nothing else is named
	Profiles map[string]Profile `json:"profiles"`
}

// profilePath is where the profiles are.
func profilePath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration directory: %w", err)
	}
	return filepath.Join(dir, "weft", "profiles.json"), nil
}

// ReadProfiles reads the file; without one there are none.
func ReadProfiles() (Profiles, error) {
	p := Profiles{Profiles: map[string]Profile{}}
	path, err := profilePath()
	if err != nil {
		return p, nil //nolint:nilerr // a user without a home has no profiles, and needs none
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return p, fmt.Errorf("read the profiles: %w", err)
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read the profiles: %s: %w", path, err)
	}
	if p.Profiles == nil {
		p.Profiles = map[string]Profile{}
	}
	return p, nil
}

// Write replaces the file, whole or not at all.
func (p *Profiles) Write() (path string, err error) {
	if path, err = profilePath(); err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("write the profiles: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "profiles-*") // with mode 0600
	if err != nil {
		return "", fmt.Errorf("write the profiles: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write the profiles: %w", err), os.Remove(file.Name()))
	}
	return path, nil
}

// target is the server that a command talks to.
type target struct {
	server string // its base URL
	key    string // "": none
	// reach is what a command line needs to get there again, "" if nothing.
	reach string
}

// aim finds the server and the key: the profile that is named, or the server, or the
// profile of the last login, or a server's default address. server is "" if none was
// named.
func aim(server, name string) (target, error) {
	p, err := ReadProfiles()
	if err != nil {
		return target{}, err
	}
	if server != "" {
		server = BaseURL(server)
	}
	t := target{server: server, key: os.Getenv("WEFT_KEY")}
	chosen, known := p.Profiles[name]
	switch {
	case name != "" && !known:
		names := slices.Sorted(maps.Keys(p.Profiles))
		all := "there are none yet"
		if len(names) > 0 {
			all = "there are " + strings.Join(names, ", ")
		}
		return t, cli.Usage("no profile %q: %s; 'weft login URL --profile %s' makes one", name, cli.Meant(name, names, all), name)
	case name != "" && server != "" && chosen.Server != server:
		return t, cli.Usage("--profile %s is for %s, but --server names %s: give only one of them", name, chosen.Server, server)
	case name != "":
		t.reach = " --profile " + name
	case server != "":
		chosen = p.of(server)
		if server != DefaultServer && server != BaseURL(os.Getenv("WEFT_SERVER")) {
			t.reach = " --server " + server
		}
	default:
		if chosen, known = p.Profiles[p.Current]; !known {
			chosen.Server = DefaultServer
		}
	}
	if chosen.Server != "" {
		t.server = chosen.Server
	}
	if t.key == "" {
		t.key = chosen.Key
	}
	return t, nil
}

// of returns the profile of a server, that of the last login before others.
func (p *Profiles) of(server string) Profile {
	for _, name := range append([]string{p.Current}, slices.Sorted(maps.Keys(p.Profiles))...) {
		if found := p.Profiles[name]; found.Server == server {
			return found
		}
	}
	return Profile{}
}

// BaseURL is a server's address as profiles have it.
func BaseURL(server string) string {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return strings.TrimRight(server, "/")
}
