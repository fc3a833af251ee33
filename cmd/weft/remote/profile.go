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

// Profile is a server with a key for it. A key is sent only to its own server.
type Profile struct {
	Server string `json:"server"`
	Key    string `json:"key,omitempty"`
}

// Profiles is the file of profiles in the user's configuration directory. It holds keys,
// so only the user may read it.
type Profiles struct {
	Current  string             `json:"current"` // used if the command line names neither a server nor a profile
	Profiles map[string]Profile `json:"profiles"`
}

// profilePath returns the path of the profiles.
func profilePath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration directory: %w", err)
	}
	return filepath.Join(dir, "weft", "profiles.json"), nil
}

// ReadProfiles reads the file. If the file does not exist, it returns no profiles.
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

// Write replaces the file atomically.
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
	// reach has the flags that a command line needs to reach this server again, "" if
	// none.
	reach string
}

// aim finds the server and the key: the named profile, the named server, the profile of
// the last login, or the default address. server is "" if the command line names no
// server.
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

// of returns the profile of a server, preferably the profile of the last login.
func (p *Profiles) of(server string) Profile {
	for _, name := range append([]string{p.Current}, slices.Sorted(maps.Keys(p.Profiles))...) {
		if found := p.Profiles[name]; found.Server == server {
			return found
		}
	}
	return Profile{}
}

// BaseURL returns a server's address in the form that profiles use.
func BaseURL(server string) string {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return strings.TrimRight(server, "/")
}
