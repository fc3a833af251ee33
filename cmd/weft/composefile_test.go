package main

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weftrun/weft/cmd/weft/serve"
	"github.com/weftrun/weft/host/hosttest"
)

// composeFile is the part of a Compose file that docs/postgres.md uses. A file with any
// other key is refused.
type composeFile struct {
	Services map[string]struct {
		Image           string
		Environment     map[string]string
		Volumes         []string
		Secrets         []string
		Ports           []string
		Restart         string
		ShmSize         string `yaml:"shm_size"`
		StopGracePeriod string `yaml:"stop_grace_period"`
		Healthcheck     *struct {
			Test     []string
			Interval string
			Retries  int
		}
		DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	}
	Volumes map[string]struct{}
	Secrets map[string]struct{ File string }
}

// The Compose file of docs/postgres.md is complete: what its services refer to is there,
// its variables are the server's, and the paths are those of the image.
func TestComposeFile(t *testing.T) {
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(hosttest.Root(), "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, text, _ := strings.Cut(page("postgres.md"), "\n```yaml\n")
	text, _, _ = strings.Cut(text, "\n```\n")
	var f composeFile
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if len(f.Services) != 2 {
		t.Fatalf("%d services", len(f.Services))
	}
	for name, s := range f.Services {
		if s.Image == "" || s.Restart != "always" {
			t.Errorf("service %s: %+v", name, s)
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, there := f.Volumes[source]; !there {
				t.Errorf("service %s: there is no volume %q", name, source)
			}
		}
		for _, secret := range s.Secrets {
			if f.Secrets[secret].File == "" {
				t.Errorf("service %s: there is no secret %q", name, secret)
			}
		}
		for other, on := range s.DependsOn {
			if on.Condition != "service_healthy" || f.Services[other].Healthcheck == nil {
				t.Errorf("service %s depends on %s: %+v", name, other, on)
			}
		}
	}
	db, weft := f.Services["db"], f.Services["weft"]
	address, err := url.Parse(weft.Environment["WEFT_STORE"])
	if err != nil || address.Hostname() != "db" || address.User.Username() != db.Environment["POSTGRES_USER"] ||
		strings.TrimPrefix(address.Path, "/") != db.Environment["POSTGRES_DB"] || weft.Environment["PGPASSWORD"] != db.Environment["POSTGRES_PASSWORD"] {
		t.Errorf("the server does not find the database: %v, %v", address, err)
	}
	flags := serve.New().Flags()
	for variable := range weft.Environment {
		flag, ours := strings.CutPrefix(variable, "WEFT_")
		if ours && flags.Lookup(strings.ReplaceAll(strings.ToLower(flag), "_", "-")) == nil {
			t.Errorf("the server has no variable %s", variable)
		}
	}
	image := page("operations.md")
	for _, path := range []string{"/run/secrets/" + weft.Secrets[0], strings.TrimPrefix(weft.Volumes[0], "cache:"), `":` + strings.Split(weft.Ports[0], ":")[2] + `"`} {
		if !strings.Contains(image, path) {
			t.Errorf("the image of docs/operations.md has no %s", path)
		}
	}
}
