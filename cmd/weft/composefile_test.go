package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weftrun/weft/cmd/weft/serve"
	"github.com/weftrun/weft/host/hosttest"
)

// composeFile is the part of a Compose file that the pages use. A file with any
// other key is refused.
type composeFile struct {
	Services map[string]struct {
		Image           string
		Command         []string
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

// yamlOf returns the blocks of YAML in a page.
func yamlOf(t *testing.T, page string) (blocks []string) {
	t.Helper()
	for _, rest := range strings.Split(docsPage(t, page), "\n```yaml\n")[1:] {
		text, _, _ := strings.Cut(rest, "\n```\n")
		blocks = append(blocks, text)
	}
	return blocks
}

func docsPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hosttest.Root(), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The Compose files of the pages are complete: what their services refer to is there, their
// variables are the server's, and the paths are those of the image.
func TestComposeFile(t *testing.T) {
	for page, services := range map[string]int{"postgres.md": 2, "cluster.md": 5} {
		t.Run(page, func(t *testing.T) { testComposeFile(t, yamlOf(t, page)[0], services) })
	}
}

func testComposeFile(t *testing.T, text string, services int) {
	var f composeFile
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if len(f.Services) != services {
		t.Fatalf("%d services", len(f.Services))
	}
	image, used := docsPage(t, "operations.md"), map[string]string{}
	for name, s := range f.Services {
		if s.Image == "" || s.Restart != "always" {
			t.Errorf("service %s: %+v", name, s)
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, there := f.Volumes[source]; !there || used[source] != "" {
				t.Errorf("service %s: there is no volume %q, or service %q has it", name, source, used[source])
			}
			used[source] = name
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
		for i, word := range s.Command {
			if to, _, _ := strings.Cut(word, ":"); i > 0 && s.Command[i-1] == "--to" && f.Services[to].Image != "weft" {
				t.Errorf("service %s: there is no node %q", name, to)
			}
		}
		if s.Image != "weft" {
			continue
		}
		db := f.Services["db"]
		address, err := url.Parse(s.Environment["WEFT_STORE"])
		if err != nil || address.Hostname() != "db" || address.User.Username() != db.Environment["POSTGRES_USER"] ||
			strings.TrimPrefix(address.Path, "/") != db.Environment["POSTGRES_DB"] || s.Environment["PGPASSWORD"] != db.Environment["POSTGRES_PASSWORD"] {
			t.Errorf("the server does not find the database: %v, %v", address, err)
		}
		checkVariables(t, s.Environment)
		if s.Environment["WEFT_CLUSTER"] != "" && (s.Environment["WEFT_NODE"] != name || s.Environment["WEFT_ADVERTISE"] != "https://"+name+s.Environment["WEFT_CLUSTER_ADDR"]) {
			t.Errorf("node %s: %v", name, s.Environment)
		}
		paths := []string{"/run/secrets/" + s.Secrets[0], strings.SplitN(s.Volumes[0], ":", 2)[1]}
		for _, port := range s.Ports {
			paths = append(paths, `":`+strings.Split(port, ":")[2]+`"`)
		}
		for _, path := range paths {
			if !strings.Contains(image, path) {
				t.Errorf("the image of docs/operations.md has no %s", path)
			}
		}
	}
}

// checkVariables looks for flags of the server that environment variables do not set.
func checkVariables(t *testing.T, environment map[string]string) {
	t.Helper()
	flags := serve.New().Flags()
	for variable := range environment {
		flag, ours := strings.CutPrefix(variable, "WEFT_")
		if ours && flags.Lookup(strings.ReplaceAll(strings.ToLower(flag), "_", "-")) == nil {
			t.Errorf("the server has no variable %s", variable)
		}
	}
}

// kubernetesObject is the part of Kubernetes' objects that docs/cluster.md uses, by their
// published schema. An object with any other key is refused.
type kubernetesObject struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		ClusterIP                string `yaml:"clusterIP"`
		PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
		Selector                 map[string]any
		Ports                    []struct {
			Name string
			Port int
		}
		ServiceName         string `yaml:"serviceName"`
		Replicas            int
		PodManagementPolicy string `yaml:"podManagementPolicy"`
		MaxUnavailable      int    `yaml:"maxUnavailable"`
		Template            struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
				Containers                    []struct {
					Name, Image string
					Args        []string
					Env         []struct {
						Name, Value string
						ValueFrom   map[string]map[string]string `yaml:"valueFrom"`
					}
					Ports []struct {
						Name          string
						ContainerPort int `yaml:"containerPort"`
					}
					ReadinessProbe *kubernetesProbe `yaml:"readinessProbe"`
					LivenessProbe  *kubernetesProbe `yaml:"livenessProbe"`
					VolumeMounts   []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
						ReadOnly  bool   `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name     string
					EmptyDir map[string]string `yaml:"emptyDir"`
					Secret   struct {
						SecretName string `yaml:"secretName"`
					}
				}
			}
		}
	}
}

type kubernetesProbe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

// The manifest of docs/cluster.md is complete, and its names are the server's.
func TestKubernetesManifest(t *testing.T) {
	decoder := yaml.NewDecoder(strings.NewReader(yamlOf(t, "cluster.md")[1]))
	decoder.KnownFields(true)
	objects := map[string]kubernetesObject{}
	for {
		var o kubernetesObject
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		objects[o.APIVersion+" "+o.Kind+" "+o.Metadata.Name] = o
	}
	set, service, headless := objects["apps/v1 StatefulSet weft"], objects["v1 Service weft"], objects["v1 Service weft-nodes"]
	if len(objects) != 4 || set.Spec.ServiceName != headless.Metadata.Name || headless.Spec.ClusterIP != "None" || len(set.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("objects %+v", objects)
	}
	c := set.Spec.Template.Spec.Containers[0]
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, s := range []kubernetesObject{service, headless} {
		if p := s.Spec.Ports[0]; ports[p.Name] != p.Port {
			t.Errorf("service %s: the container has no port %d named %q", s.Metadata.Name, p.Port, p.Name)
		}
	}
	environment := map[string]string{}
	for _, e := range c.Env {
		environment[e.Name] = e.Value
	}
	checkVariables(t, environment)
	nodes := fmt.Sprint(":", ports["nodes"])
	if environment["WEFT_CLUSTER_ADDR"] != nodes || environment["WEFT_ADVERTISE"] != "https://$(POD)."+headless.Metadata.Name+nodes {
		t.Errorf("the other nodes do not find a node: %v", environment)
	}
	if err := serve.New().ParseFlags(c.Args[1:]); err != nil {
		t.Errorf("%q: %v", c.Args, err)
	}
	for _, probe := range []*kubernetesProbe{c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil || ports[probe.HTTPGet.Port] == 0 {
			t.Errorf("probe %+v", probe)
		}
	}
	volumes := map[string]bool{}
	for _, v := range set.Spec.Template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("there is no volume %q", m.Name)
		}
	}
}
