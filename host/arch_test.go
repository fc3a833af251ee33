package host_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/limit"
)

const modulePath = "github.com/weftrun/weft"

// room is one package of the root module and the packages of ours that its
// non-test files may import. A trailing "..." stands for every package.
type room struct {
	path string
	may  []string
}

// rooms lists the packages in the order in which data passes them. What is not
// granted here is a sideways import: declare an interface where it is consumed
// and join the two in cmd/weft. A new package has to be placed here.
var rooms = []room{
	{"abi/cbor", nil},
	{"abi", []string{"abi/cbor"}},
	{"host/jsonfile", nil},
	{"host/limit", []string{"abi", "host/jsonfile"}},
	{"host/position", nil},
	{"host/kv", []string{"abi"}},
	{"host/diagram", []string{"abi"}},
	{"host", []string{"abi", "host/diagram", "host/kv", "host/missing", "host/limit", "host/position", "host/usage"}},
	{"host/missing", nil},
	{"host/codes", []string{"host", "host/missing"}},
	{"host/search", []string{"abi", "host"}},
	{"host/deaths", nil},
	{"host/inspect", []string{"host"}},
	{"host/turns", nil},
	{"host/traced", []string{"abi", "host"}},
	{"host/behalf", nil},
	{"host/usage", nil},
	{"host/bucket", nil},
	{"host/apiwire", []string{"abi", "host", "host/limit", "host/usage", "host/codes", "host/diagram"}},
	{"host/httpapi", []string{"abi", "abi/cbor", "host", "host/position", "host/apiwire", "host/httpapi/abuse", "host/httpapi/object", "host/httpapi/openapi", "host/search", "host/traced", "host/behalf", "host/turns", "host/diagram", "host/kv", "host/limit"}},
	{"host/httpapi/abuse", []string{"abi", "abi/cbor", "host", "host/bucket"}},
	{"host/httpapi/object", []string{"abi", "abi/cbor"}},
	{"host/httpapi/openapi", []string{"host", "host/apiwire", "host/search"}},
	{"host/scheduler", []string{"abi", "host", "host/state", "host/engine", "host/work", "host/scheduler/admission", "host/scheduler/calls", "host/scheduler/continuation", "host/scheduler/downtime", "host/scheduler/due", "host/scheduler/edits", "host/scheduler/fair", "host/scheduler/handlers", "host/scheduler/history", "host/scheduler/idempotency", "host/scheduler/mail", "host/scheduler/quarantine", "host/scheduler/refusal", "host/scheduler/requests", "host/scheduler/retention", "host/scheduler/runlog", "host/scheduler/suspects", "host/scheduler/tickets", "host/scheduler/versions", "host/traced", "host/deaths", "host/missing", "host/usage", "host/limit", "host/kv"}},
	{"host/scheduler/admission", []string{"host", "host/limit"}},
	{"host/scheduler/calls", []string{"abi", "host", "host/traced", "host/kv"}},
	{"host/scheduler/refusal", []string{"abi", "host", "host/engine"}},
	{"host/scheduler/continuation", []string{"abi", "host", "host/engine", "host/limit", "host/state", "host/scheduler/edits", "host/scheduler/handlers", "host/scheduler/history", "host/scheduler/refusal", "host/scheduler/versions"}},
	{"host/scheduler/requests", []string{"abi", "host", "host/engine", "host/limit", "host/state", "host/work", "host/scheduler/admission", "host/scheduler/continuation", "host/scheduler/edits", "host/scheduler/handlers", "host/scheduler/history", "host/scheduler/idempotency", "host/scheduler/refusal", "host/scheduler/versions"}},
	{"host/scheduler/due", []string{"host", "host/scheduler/fair"}},
	{"host/scheduler/runlog", []string{"host", "host/traced"}},
	{"host/scheduler/edits", []string{"abi", "host", "host/engine", "host/limit", "host/scheduler/history", "host/scheduler/tickets", "host/state", "host/work"}},
	{"host/scheduler/fair", []string{"host/bucket"}},
	{"host/scheduler/handlers", []string{"host"}},
	{"host/scheduler/idempotency", []string{"host"}},
	{"host/scheduler/mail", []string{"host", "host/engine"}},
	{"host/scheduler/quarantine", []string{"host"}},
	{"host/scheduler/downtime", []string{"host"}},
	{"host/scheduler/retention", []string{"host", "host/limit"}},
	{"host/scheduler/suspects", []string{"host", "host/deaths", "host/work"}},
	{"host/scheduler/tickets", []string{"abi", "host/state", "host/engine"}},
	{"host/scheduler/versions", []string{"abi", "host", "host/engine", "host/limit", "host/work"}},
	{"host/scheduler/history", []string{"abi", "host", "host/position", "host/state", "host/engine"}},
	{"host/engine", []string{"abi", "abi/cbor", "host", "host/state", "host/work", "host/limit", "host/diagram"}},
	{"host/sandbox", []string{"abi", "abi/cbor", "host", "host/extism", "host/sandbox/arena", "host/sandbox/buildqueue", "host/sandbox/codefiles", "host/sandbox/confine", "host/sandbox/flight", "host/sandbox/lines", "host/sandbox/memory", "host/sandbox/rewrite", "host/sandbox/wasi", "host/sandbox/wasmbin", "host/turns", "host/missing", "host/limit", "host/behalf"}},
	{"host/extism", []string{"abi", "host"}},
	{"host/sandbox/arena", []string{"host/sandbox/rewrite"}},
	{"host/sandbox/codefiles", []string{"host/sandbox/confine"}},
	{"host/sandbox/flight", nil},
	{"host/sandbox/buildqueue", []string{"host/turns"}},
	{"host/sandbox/confine", nil},
	{"host/sandbox/lines", nil},
	{"host/sandbox/rewrite", []string{"host/sandbox/wasmbin"}},
	{"host/sandbox/wasmbin", nil},
	{"host/sandbox/memory", nil},
	{"host/sandbox/spectest", []string{"host/sandbox/rewrite", "host/sandbox/wasmbin"}},
	{"host/sandbox/wasi", []string{"abi", "host", "host/missing"}},
	{"host/hostcall", []string{"abi", "abi/cbor", "host", "host/state", "host/engine", "host/work", "host/missing"}},
	{"host/state", []string{"abi", "abi/cbor", "host", "host/jsonschema", "host/pattern", "host/work"}},
	{"host/jsonschema", []string{"abi", "abi/cbor", "host/pattern", "host/work"}},
	{"host/jsonschema/draft2020", []string{"abi", "host/jsonschema", "host/pattern"}},
	{"host/pattern", []string{"host/work"}},
	{"host/work", nil},
	{"host/journal", []string{"abi", "abi/cbor", "host", "host/usage", "host/kv"}},
	{"host/access", []string{"abi", "host", "host/limit"}},
	{"host/store/memory", []string{"abi", "host", "host/search", "host/limit", "host/usage", "host/kv"}},
	{"host/store/sqlite", []string{"abi", "host", "host/search", "host/inspect", "host/limit", "host/usage", "host/store/record", "host/store/sqlite/datadir", "host/store/sqlite/schema", "host/store/sqlite/wal", "host/kv"}},
	{"host/store/sqlite/schema", []string{"host"}},
	{"host/store/sqlite/datadir", nil},
	{"host/store/sqlite/wal", []string{"host/store/sqlite/datadir"}},
	{"host/store/postgres", []string{"abi", "host", "host/cluster", "host/inspect", "host/search", "host/limit", "host/usage", "host/store/postgres/schema", "host/store/record", "host/kv"}},
	{"host/store/postgres/schema", []string{"host"}},
	{"host/store/postgres/pgtest", []string{"host/hosttest/suite"}},
	{"host/store/record", []string{"abi", "host"}},
	{"host/store/copy", []string{"host/store/record"}},
	{"host/store/sqlite/faultdisk", nil},
	{"host/store/storetest", []string{"abi", "host", "host/search", "host/limit", "host/usage", "host/kv"}},
	{"host/stream", []string{"abi", "host", "host/position"}},
	{"host/quota", []string{"host", "host/bucket", "host/limit", "host/usage"}},
	{"host/blackbox", []string{"host", "host/deaths"}},
	{"host/audit", []string{"abi", "host", "host/engine", "host/inspect"}},
	{"host/module", []string{"abi", "abi/cbor", "host", "host/extism", "host/state", "host/engine", "host/flow", "host/jsonschema", "host/jsonschema/draft2020", "host/work", "host/limit", "host/behalf", "host/diagram"}},
	{"host/flow", []string{"abi", "host", "host/state", "host/pattern", "host/work", "host/diagram", "host/limit"}},
	{"host/sse", nil},
	{"host/resource", []string{"abi", "host", "host/jsonfile", "host/sse", "host/kv", "host/limit"}},
	{"host/metrics", []string{"abi", "host", "host/limit"}},
	{"host/trace", []string{"abi", "host", "host/traced"}},
	{"host/server", []string{"host"}},
	{"host/cluster", []string{"host"}},
	{"host/cluster/clustertest", []string{"host", "host/cluster"}},
	{"host/cluster/forward", []string{"host", "host/apiwire", "host/cluster"}},
	{"host/console", nil}, // it knows the API by its paths
	{"host/client", []string{"abi", "host", "host/position", "host/apiwire", "host/sse", "host/turns", "host/limit", "host/diagram"}},
	{"host/hosttest", []string{"..."}},
	{"host/hosttest/suite", []string{"host", "host/limit"}},
	{"sdk-guest/rust", nil}, // its sources are in the binary
	{"sdk-guest/js", nil},   // the engine is in the binary
	{"sdk-guest/js/sdk", nil},
	{"sdk-guest/py", nil}, // the engine is in the binary
	{"sdk-guest/py/sdk", nil},
	{"cmd/weft/wire", []string{"..."}},
	{"cmd/weft/scaffold", []string{"sdk-guest/js/sdk", "sdk-guest/py/sdk", "sdk-guest/rust"}},
	{"cmd/weft/guest", []string{"cmd/weft/guest/script"}},
	{"cmd/weft/guest/script", []string{"abi/cbor", "sdk-guest/js", "sdk-guest/js/sdk", "sdk-guest/py", "sdk-guest/py/sdk"}},
	{"cmd/weft/screen", []string{"host"}},
	{"cmd/weft/cli", []string{"host", "host/limit"}},
	{"cmd/weft/remote", []string{"host", "host/client", "host/server", "cmd/weft/cli", "cmd/weft/screen"}},
	{"cmd/weft/input", []string{"cmd/weft/cli", "cmd/weft/remote", "cmd/weft/screen"}},
	{"cmd/weft/access", []string{"host", "host/apiwire", "host/client", "cmd/weft/cli", "cmd/weft/remote", "cmd/weft/screen", "host/limit"}},
	{"cmd/weft/runs", []string{"abi", "host", "host/position", "host/client", "cmd/weft/cli", "cmd/weft/input", "cmd/weft/remote", "cmd/weft/screen"}},
	{"cmd/weft/project", []string{"cmd/weft/cli", "cmd/weft/guest", "cmd/weft/scaffold", "cmd/weft/screen"}},
	{"cmd/weft/plugins", []string{"abi", "host", "host/client", "host/sandbox", "cmd/weft/cli", "cmd/weft/guest", "cmd/weft/input", "cmd/weft/project", "cmd/weft/remote", "cmd/weft/screen", "cmd/weft/wire", "host/turns", "host/limit", "host/diagram"}},
	{"cmd/weft/bench", []string{"host", "host/client", "cmd/weft/cli", "cmd/weft/input", "cmd/weft/plugins", "cmd/weft/remote", "cmd/weft/runs", "cmd/weft/screen"}},
	{"cmd/weft/cases", []string{"abi", "host", "host/position", "host/client", "cmd/weft/cli", "cmd/weft/guest", "cmd/weft/input", "cmd/weft/plugins", "cmd/weft/project", "cmd/weft/remote", "cmd/weft/runs", "cmd/weft/screen", "host/codes", "host/missing", "host/limit"}},
	{"cmd/weft/dev", []string{"abi", "host", "host/position", "host/client", "host/server", "cmd/weft/cases", "cmd/weft/cli", "cmd/weft/guest", "cmd/weft/input", "cmd/weft/plugins", "cmd/weft/project", "cmd/weft/remote", "cmd/weft/runs", "cmd/weft/screen", "cmd/weft/wire"}},
	{"cmd/weft/data", []string{"host", "host/audit", "host/store/copy", "host/store/postgres", "host/store/record", "host/store/sqlite", "cmd/weft/cli", "cmd/weft/screen", "cmd/weft/wire"}},
	{"cmd/weft/serve", []string{"..."}},
	{"cmd/weft", []string{"..."}},
}

// The page about the architecture says what each package is for.
func TestArchitecturePageHasEachPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("../docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		if !strings.Contains(string(page), "`"+r.path+"`") {
			t.Errorf("docs/architecture.md does not name %s", r.path)
		}
	}
}

// modules says which folder may import which third-party module. testOnly
// modules serve test files and the packages that exist for tests.
var modules = map[string]string{
	"cel.dev/cel-go": "host/flow",
	"github.com/HdrHistogram/hdrhistogram-go":    "cmd/weft",
	"github.com/klauspost/compress":              "host/store/record",
	"github.com/evanw/esbuild":                   "cmd/weft/guest/script",
	"github.com/fxamacker/cbor/v2":               "abi",
	"github.com/jackc/pgx/v5":                    "host/store/postgres",
	"github.com/labstack/echo/v4":                "host/httpapi",
	"github.com/mattn/go-runewidth":              "cmd/weft/screen",
	"github.com/prometheus/client_golang":        "host/metrics",
	"github.com/santhosh-tekuri/jsonschema/v6":   "host/jsonschema/draft2020",
	"github.com/spf13/cobra":                     "cmd/weft",
	"github.com/spf13/pflag":                     "cmd/weft",
	"github.com/tetratelabs/wazero":              "host/sandbox",
	"go.yaml.in/yaml/v3":                         "cmd/weft",
	"go.opentelemetry.io/otel":                   "host/trace",
	"go.opentelemetry.io/proto/otlp":             testOnly,
	"golang.org/x/sys":                           "host/sandbox",
	"google.golang.org/protobuf":                 testOnly,
	"modernc.org/libc":                           "host/store/sqlite",
	"modernc.org/sqlite":                         "host/store/sqlite",
	"github.com/extism/go-sdk":                   testOnly,
	"github.com/rogpeppe/go-internal/testscript": testOnly,
	"github.com/rogpeppe/go-internal/txtar":      testOnly,
	"github.com/anishathalye/porcupine":          testOnly,
	"go.uber.org/goleak":                         testOnly,
	"pgregory.net/rapid":                         testOnly,
}

const testOnly = "test files"

// testPackages are linked into tests only, without being called _test.go.
var testPackages = []string{"host/sandbox/spectest", "host/store/sqlite/faultdisk", "host/store/postgres/pgtest", "host/store/storetest", "host/cluster/clustertest", "host/hosttest", "host/hosttest/suite"}

// pure packages compute: no clock, no chance, no I/O, no goroutine. What they
// answer depends on their arguments alone, so that replay gives the same.
var pure = []string{"host/engine", "host/state", "host/flow", "host/jsonschema", "host/pattern", "host/work"}

// impure are the imports that a pure package has no use for; what lies below
// them (sync/atomic, math/rand/v2, net/http) is meant as well.
var impure = []string{
	"context", "sync", "math/rand", "crypto/rand", "hash/maphash", "os", "io", "net",
	"database/sql", "log", "syscall", "testing",
}

// clock are the functions of package time that read or wait for the clock.
var clock = []string{
	"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker",
}

// source is one parsed Go file of the root module.
type source struct {
	name string // slash-separated, from the module's root
	room string // its folder, likewise
	test bool
	file *ast.File
	fset *token.FileSet
}

func TestImportsFollowTheTable(t *testing.T) {
	sources := load(t)
	for _, r := range rooms {
		for _, dep := range r.may {
			if dep != "..." && !slices.ContainsFunc(rooms, func(o room) bool { return o.path == dep }) {
				t.Errorf("table: %s may import %s, which is not in the table", r.path, dep)
			}
		}
	}
	for _, s := range sources {
		for _, problem := range importProblems(s) {
			t.Error(problem)
		}
	}
}

func TestEngineAndStateArePure(t *testing.T) {
	for _, s := range load(t) {
		for _, problem := range purityProblems(s) {
			t.Error(problem)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	docs := map[string][]source{}
	for _, s := range load(t) {
		if s.test {
			continue
		}
		if _, seen := docs[s.room]; !seen {
			docs[s.room] = nil
		}
		if s.file.Doc != nil {
			docs[s.room] = append(docs[s.room], s)
		}
	}
	for folder, with := range docs {
		switch len(with) {
		case 0:
			t.Errorf("%s: no file has a package comment", folder)
		case 1:
			if problem := docProblem(with[0]); problem != "" {
				t.Error(problem)
			}
		default:
			t.Errorf("%s: %d package comments (%s, %s, ...), one is enough", folder, len(with), with[0].name, with[1].name)
		}
	}
}

// TestLimitsAreDocumented holds the first table of docs/limits.md to
// DefaultLimits and MaxLimits.
func TestLimitsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	limits, most := reflect.ValueOf(limit.Default()), reflect.ValueOf(limit.Most())
	for i := range limits.NumField() {
		name := limits.Type().Field(i).Name
		row := fmt.Sprintf("| `%s` | %s | %s |", name, shown(name, limits.Field(i)), shown(name, most.Field(i)))
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md has no row that begins with %q", row)
		}
	}
}

// TestQuotasAreDocumented holds the table of quotas in docs/limits.md to what is built
// in.
func TestQuotasAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	var limits *limit.Table
	for _, in := range limits.InForce("a-tenant", "") {
		if _, ok := limit.ParseQuota(in.Name); !ok {
			continue
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |", in.Name, in.Text, in.Most); !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md has no row that begins with %q", row)
		}
	}
}

// shown is a limit as people write it: 32 MiB, 65,536, 30s.
func shown(name string, limit reflect.Value) string {
	text := fmt.Sprint(limit.Interface())
	switch {
	case limit.Type() == reflect.TypeFor[time.Duration]():
		return text
	case strings.HasSuffix(name, "Bytes"):
		return fmt.Sprintf("%d MiB", limit.Int()>>20)
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// TestArchitectureChecksNotice keeps the checks above honest: each of these
// made-up files breaks one rule, or none.
func TestArchitectureChecksNotice(t *testing.T) {
	tests := []struct {
		name, file, text, want string
	}{
		{"down the data path", "host/scheduler/x.go", `import "github.com/weftrun/weft/host/engine"`, ""},
		{"sideways", "host/httpapi/x.go", `import "github.com/weftrun/weft/host/scheduler"`, "may not import host/scheduler"},
		{"sideways in a test", "host/httpapi/x_test.go", `import "github.com/weftrun/weft/host/hosttest"`, ""},
		{"sideways in a pure test", "host/state/x_test.go", `import "github.com/weftrun/weft/host/engine"`, "may not import host/engine"},
		{"itself in an external test", "host/state/x_test.go", `import "github.com/weftrun/weft/host/state"`, ""},
		{"a test package outside tests", "host/client/x.go", `import "github.com/weftrun/weft/host/hosttest"`, "may not import host/hosttest"},
		{"new package", "host/novel/x.go", ``, "not in the table"},
		{"third party at home", "host/sandbox/wasi/x.go", `import "github.com/tetratelabs/wazero/api"`, ""},
		{"third party elsewhere", "host/module/x.go", `import "github.com/tetratelabs/wazero"`, "belongs to host/sandbox"},
		{"third party in a test", "host/module/x_test.go", `import "github.com/tetratelabs/wazero"`, ""},
		{"unweighed third party", "host/module/x_test.go", `import "example.com/novel"`, "not in the table"},
		{"test module in production", "host/module/x.go", `import "go.uber.org/goleak"`, "belongs to test files"},
		{"test module in a test package", "host/hosttest/x.go", `import "go.uber.org/goleak"`, ""},
		{"pure context", "host/engine/x.go", `import "context"`, "imports context"},
		{"pure atomic", "host/state/x.go", `import "sync/atomic"`, "imports sync/atomic"},
		{"pure duration", "host/engine/x.go", "import \"time\"\nconst d = time.Second", ""},
		{"pure clock", "host/engine/x.go", "import \"time\"\nvar n = time.Now()", "uses time.Now"},
		{"pure renamed clock", "host/engine/x.go", "import chrono \"time\"\nvar n = chrono.Since", "uses time.Since"},
		{"pure dot import", "host/engine/x.go", "import . \"time\"\nvar n = Now()", "imports time by a dot"},
		{"pure goroutine", "host/engine/x.go", "func f() { go f() }", "starts a goroutine"},
		{"clock elsewhere", "host/journal/x.go", "import \"time\"\nvar n = time.Now()", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fset := token.NewFileSet()
			s, err := parse(fset, tt.file, "package x\n"+tt.text)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(append(importProblems(s), purityProblems(s)...), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("problems = %q, want one with %q", got, tt.want)
			}
		})
	}
}

// importProblems says what a file imports that the tables do not grant it.
func importProblems(s source) []string {
	var problems []string
	add := func(format string, args ...any) {
		problems = append(problems, s.name+": "+fmt.Sprintf(format, args...))
	}
	i := slices.IndexFunc(rooms, func(r room) bool { return r.path == s.room })
	if i < 0 {
		add("package %s is not in the table: place it", s.room)
		return problems
	}
	for _, spec := range s.file.Imports {
		imported := importPath(spec)
		first, _, _ := strings.Cut(imported, "/")
		ours, isOurs := strings.CutPrefix(imported, modulePath+"/")
		switch {
		case isOurs:
			if !s.mayImport(rooms[i], ours) {
				add("may not import %s", ours)
			}
		case strings.Contains(first, "."):
			home, known := homeOf(imported)
			if !known {
				add("third-party import %s is not in the table: weigh it in RATIONALE.md and place it", imported)
			} else if !s.mayUse(home) {
				add("imports %s, which belongs to %s", imported, home)
			}
		}
	}
	return problems
}

// mayImport tells whether the file, of room r, may import our package dep. Test
// files may import all of ours, but those of pure packages what their package may,
// and what all tests share.
func (s source) mayImport(r room, dep string) bool {
	if s.test && (dep == "host/hosttest/suite" || dep == s.room || !slices.Contains(pure, s.room)) {
		return true
	}
	return slices.Contains(r.may, "...") || slices.Contains(r.may, dep)
}

// mayUse tells whether the file may import a third-party module that lives in home.
func (s source) mayUse(home string) bool {
	if s.test || slices.Contains(testPackages, s.room) {
		return true
	}
	return within(s.room, home)
}

// homeOf finds the folder of the third-party module that has the given package.
func homeOf(imported string) (home string, known bool) {
	for module, folder := range modules {
		if within(imported, module) {
			return folder, true
		}
	}
	return "", false
}

// purityProblems says where a non-test file of a pure package reaches for the world.
func purityProblems(s source) []string {
	if s.test || !slices.Contains(pure, s.room) {
		return nil
	}
	var problems []string
	add := func(at token.Pos, format string, args ...any) {
		line := s.fset.Position(at).Line
		problems = append(problems, fmt.Sprintf("%s:%d: %s", s.name, line, fmt.Sprintf(format, args...)))
	}
	timeName := ""
	for _, spec := range s.file.Imports {
		imported := importPath(spec)
		if slices.ContainsFunc(impure, func(root string) bool { return within(imported, root) }) {
			add(spec.Pos(), "pure package imports %s", imported)
		}
		if imported != "time" {
			continue
		}
		timeName = "time"
		if spec.Name != nil {
			timeName = spec.Name.Name
		}
		if timeName == "." {
			add(spec.Pos(), "pure package imports time by a dot")
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n.Pos(), "pure package starts a goroutine")
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && x.Name == timeName && slices.Contains(clock, n.Sel.Name) {
				add(n.Pos(), "pure package uses time.%s", n.Sel.Name)
			}
		}
		return true
	})
	return problems
}

// docProblem says what is wrong with the beginning of a package comment.
func docProblem(s source) string {
	want := "Package " + s.file.Name.Name + " "
	if s.file.Name.Name == "main" {
		want = "Command " + path.Base(s.room) + " "
	}
	text := strings.ReplaceAll(s.file.Doc.Text(), "\n", " ")
	if !strings.HasPrefix(text, want) {
		return fmt.Sprintf("%s: the package comment does not begin with %q", s.name, want)
	}
	return ""
}

// load parses every Go file of the root module. Folders with a go.mod of their
// own (guest SDKs, example plugins, tools) are other modules.
func load(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var sources []source
	fset := token.NewFileSet()
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root:
			return skip(name)
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		s, err := parse(fset, filepath.ToSlash(rel), string(text))
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatalf("no Go files below %s", root)
	}
	return sources
}

// skip answers fs.SkipDir for folders that the go command leaves out as well.
func skip(folder string) error {
	base := filepath.Base(folder)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func parse(fset *token.FileSet, name, text string) (source, error) {
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{
		name: name,
		room: path.Dir(name),
		test: strings.HasSuffix(name, "_test.go"),
		file: file,
		fset: fset,
	}, err
}

// importPath is the import's path without quotes; the parser has checked them.
func importPath(spec *ast.ImportSpec) string {
	imported, _ := strconv.Unquote(spec.Path.Value)
	return imported
}

// within tells whether name is the slash-separated path root or lies below it.
func within(name, root string) bool {
	return name == root || strings.HasPrefix(name, root+"/")
}
