package limit

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/jsonfile"
)

// snake is a field's name in files and messages.
func snake(field string) string {
	var b strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Every field of Limits has a setting, under its own name, that reads and
// writes this field alone, and a default within its bounds.
func TestNoLimitIsForgotten(t *testing.T) {
	typ, defaults := reflect.TypeFor[Limits](), reflect.ValueOf(Default())
	if typ.NumField() != len(limitSettings) {
		t.Fatalf("%d fields, %d settings", typ.NumField(), len(limitSettings))
	}
	for i := range typ.NumField() {
		s, field := &limitSettings[i], typ.Field(i)
		if s.name != snake(field.Name) || settingNamed(s.name) != s {
			t.Errorf("field %s has setting %s", field.Name, s.name)
		}
		if (field.Type == reflect.TypeFor[time.Duration]()) != (s.form == formSpan) {
			t.Errorf("%s has form %d", field.Name, s.form)
		}
		var l Limits
		s.set(&l, 7)
		want := reflect.New(typ).Elem()
		want.Field(i).Set(reflect.ValueOf(7).Convert(field.Type))
		if l != want.Interface() || s.get(&l) != 7 {
			t.Errorf("setting %s gives %+v", s.name, l)
		}
		if complete := l.Complete(); complete == (Limits{}) || s.get(&complete) != 7 {
			t.Errorf("%s is lost when the limits are completed", field.Name)
		}
		d := Default()
		if v := s.get(&d); v < s.least || v > s.most || s.least < 1 || defaults.Field(i).IsZero() {
			t.Errorf("%s: the default %d is not from %d to %d", s.name, v, s.least, s.most)
		}
		most := Most()
		if s.get(&most) != s.most {
			t.Errorf("%s: MaxLimits has %d", s.name, s.get(&most))
		}
		for _, v := range []int64{s.least, s.most} { // what is shown is what can be written
			text := fmt.Sprintf(`{"defaults": {%q: %s}}`, s.name, strings.ReplaceAll(s.show(v), ",", ""))
			if s.form != formCount {
				text = fmt.Sprintf(`{"defaults": {%q: %q}}`, s.name, strings.ReplaceAll(s.show(v), ",", ""))
			}
			table, err := Parse([]byte(text))
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if got := table.Limits("t", "p"); s.get(&got) != v {
				t.Errorf("%s gives %d", text, s.get(&got))
			}
		}
	}
	if (Limits{}).Complete() != Default() {
		t.Error("no limits are not the defaults")
	}
}

// Limits are part of the journal: what was written is what is read.
func TestLimitsSurviveTheJournal(t *testing.T) {
	typ := reflect.TypeFor[Limits]()
	v := reflect.New(typ).Elem()
	for i := range typ.NumField() {
		v.Field(i).Set(reflect.ValueOf(1000 + i).Convert(typ.Field(i).Type))
	}
	l := v.Interface().(Limits)
	b, err := abi.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	var got Limits
	if err := abi.Unmarshal(b, &got); err != nil || got != l {
		t.Errorf("%+v came back as %+v, %v", l, got, err)
	}
}

const layered = `{
	"defaults": {"memory_bytes": "128MiB", "fuel": 2e9, "wall_time": "1m30s", "tenant_fuel_per_second": 5000000},
	"plugins": {"crunch": {"fuel": 3e9, "call_depth": 2097152, "host_calls": 30}},
	"tenants": {
		"acme": {"fuel": 4000000000, "log_lines": 40, "tenant_fuel_per_second": 0, "plugins": {"crunch": {"fuel": 5e9, "output_bytes": "1 MiB"}}},
		"free": {"host_calls": 10, "tenant_fuel_per_second": 1e6, "tenant_invocations": 2}}}`

func TestMostSpecificLimitWins(t *testing.T) {
	table, err := Parse([]byte(layered))
	if err != nil {
		t.Fatal(err)
	}
	base := Default()
	base.MemoryBytes, base.Fuel, base.WallTime = 128<<20, 2e9, 90*time.Second
	for _, tt := range []struct {
		tenant, plugin string
		edit           func(*Limits)
		fuel           uint64
	}{
		{"other", "other", func(*Limits) {}, 5e6},
		{"other", "crunch", func(l *Limits) { l.Fuel, l.CallDepth, l.HostCalls = 3e9, 2<<20, 30 }, 5e6},
		{"acme", "other", func(l *Limits) { l.Fuel, l.LogLines = 4e9, 40 }, 0},
		{"acme", "crunch", func(l *Limits) {
			l.Fuel, l.LogLines, l.CallDepth, l.HostCalls, l.OutputBytes = 5e9, 40, 2<<20, 30, 1<<20
		}, 0},
		// A plugin's name gives a tenant no more than the tenant may have.
		{"free", "crunch", func(l *Limits) { l.Fuel, l.CallDepth, l.HostCalls = 3e9, 2<<20, 10 }, 1e6},
	} {
		want := base
		tt.edit(&want)
		if got := table.Limits(tt.tenant, tt.plugin); got != want {
			t.Errorf("%s/%s: %+v\nwant %+v", tt.tenant, tt.plugin, got, want)
		}
		if got := table.TenantFuel(tt.tenant); got != tt.fuel {
			t.Errorf("%s: %d units a second, want %d", tt.tenant, got, tt.fuel)
		}
	}
	if n, none := table.TenantInvocations("free"), table.TenantInvocations("acme"); n != 2 || none != 0 {
		t.Errorf("%d and %d invocations, want 2 and as many as there are cores", n, none)
	}
	tenants, plugins := table.Named()
	slices.Sort(tenants)
	if !slices.Equal(tenants, []string{"acme", "free"}) || !slices.Equal(plugins, []string{"crunch"}) {
		t.Errorf("named: %v, %v", tenants, plugins)
	}
}

func TestInForceSaysWhereFrom(t *testing.T) {
	table, err := Parse([]byte(layered))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, in := range table.InForce("acme", "crunch") {
		got[in.Name] = in.Text + " " + in.From
	}
	for name, want := range map[string]string{
		"fuel": "5,000,000,000 tenants.acme.plugins.crunch", "log_lines": "40 tenants.acme", "call_depth": "2MiB plugins.crunch",
		"wall_time": "1m30s defaults", "state_bytes": "64MiB ", "tenant_fuel_per_second": "none tenants.acme", "tenant_invocations": "none ",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	var none *Table
	if list := none.InForce("t", "p"); len(list) != len(limitSettings)+len(tenantSettings) || list[0].Text != "32MiB" || list[0].From != "" {
		t.Errorf("without a file: %+v", list)
	}
	if none.Limits("t", "p") != Default() || none.TenantFuel("t") != 0 || none.TenantInvocations("t") != 0 || none.Greatest() != Default() {
		t.Error("no table is not the defaults")
	}
}

func TestGreatestLooksEverywhere(t *testing.T) {
	want := Default()
	want.ModuleBytes = 64 << 20
	for _, place := range []string{`"defaults": %s`, `"plugins": {"p": %s}`, `"tenants": {"t": %s}`, `"tenants": {"t": {"plugins": {"p": %s}}}`} {
		text := "{" + fmt.Sprintf(place, `{"module_bytes": "64MiB", "host_calls": 5}`) + "}"
		table, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if want.HostCalls = Default().HostCalls; strings.HasPrefix(place, `"defaults"`) {
			want.HostCalls = 5 // for all
		}
		if got := table.Greatest(); got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := NewTable(Limits{ModuleBytes: 5000}).Greatest().ModuleBytes; got != 5000 {
		t.Errorf("%d", got)
	}
}

func TestFilesOfLimitsAreChecked(t *testing.T) {
	const size = `takes a size from 64KiB to 4GiB, as a number of bytes or a text such as "64MiB", not `
	for _, tt := range []struct {
		text string
		want []string // one for each problem
	}{
		{``, []string{"the file is empty"}},
		{`[]`, []string{"line 1, column 1: must be an object, not a list"}},
		{`{"defaults": {`, []string{"line 1, column 15: the text ends in the middle"}},
		{`{"defaults": {"fuel": 1e9}`, []string{"the text ends in the middle"}},
		{`{"defaults"`, []string{"the text ends in the middle"}},
		{"{\n  \"defaults\": {\"fuel\" 5}}", []string{"line 2, column 22: no JSON"}},
		{`{"defaults": {"fuel": 1e9,}}`, []string{"line 1, column 2"}},
		{`{} {}`, []string{"line 1, column 4: more follows"}},
		{`{"tenant": {"a": [{}]}, "x": 1}`, []string{`line 1, column 2: unknown name "tenant": use defaults, plugins or tenants`, `line 1, column 25: unknown name "x"`}},
		{`{"defaults": null}`, []string{"defaults: must be an object, not null"}},
		{`{"defaults": {"memory_byte": 1}}`, []string{`line 1, column 15: defaults: unknown setting "memory_byte": use module_bytes, memory_bytes, `}},
		{`{"defaults": {"MemoryBytes": 1}}`, []string{`unknown setting "MemoryBytes"`}},
		{`{"defaults": {"plugins": {}}}`, []string{`unknown setting "plugins"`}},
		{"{\"defaults\": {\n\t\"memory_bytes\": -1,\n\t\"fuel\": 0}}", []string{"line 2, column 18: defaults.memory_bytes: " + size + "-1", "line 3, column 10: defaults.fuel: takes a number from 1,000 to"}},
		{`{"defaults": {"memory_bytes": "5GiB"}}`, []string{size + `"5GiB"`}},
		{`{"defaults": {"memory_bytes": "64"}}`, []string{size + `"64"`}},
		{`{"defaults": {"memory_bytes": "-1MiB"}}`, []string{size}},
		{`{"defaults": {"memory_bytes": "1.5GiB"}}`, []string{size}},
		{`{"defaults": {"memory_bytes": 100000.5}}`, []string{size + "100000.5"}},
		{`{"defaults": {"memory_bytes": "99999999999999999999GiB"}}`, []string{size}},
		{`{"defaults": {"memory_bytes": "9000000000GiB"}}`, []string{size}},
		{`{"defaults": {"memory_bytes": null, "fuel": [1, {"a": 2}], "host_calls": {"b": {}}, "log_lines": true}}`,
			[]string{"not null", "defaults.fuel: takes a number from 1,000 to 1,000,000,000,000,000, not a list", "not an object", "not true"}},
		{`{"defaults": {"call_depth": "65MiB"}}`, []string{"takes a size from 4KiB to 64MiB"}},
		{`{"defaults": {"fuel": "1e9"}}`, []string{`not "1e9"`}},
		{`{"defaults": {"wall_time": 30}}`, []string{`takes a time from 1ms to 24h, as a text such as "30s", not 30`}},
		{`{"defaults": {"wall_time": "30"}}`, []string{"takes a time"}},
		{`{"defaults": {"wall_time": "-1s"}}`, []string{"takes a time"}},
		{`{"defaults": {"tenant_fuel_per_second": 1000}}`, []string{"takes a number from 1,000,000 to 1,000,000,000,000, or 0 for none, not 1000"}},
		{`{"plugins": {"p": {"tenant_invocations": 1}}}`, []string{"plugins.p.tenant_invocations: holds for all that a tenant runs"}},
		{`{"tenants": {"t": {"tenant_invocations": -1}}}`, []string{"takes a number from 1 to 1,000,000, or 0 for none, not -1"}},
		{`{"plugins": {"p": {"tenant_fuel_per_second": 0}}}`, []string{"plugins.p.tenant_fuel_per_second: holds for all that a tenant runs"}},
		{`{"tenants": {"a": {"plugins": {"p.q": {"tenant_fuel_per_second": 0, "fuel": -5}}}}}`,
			[]string{`tenants.a.plugins."p.q".tenant_fuel_per_second: holds`, `tenants.a.plugins."p.q".fuel: takes`}},
		{`{"tenants": {"": {}, "a\u0007": {}}}`, []string{`tenants: "" is not a name`, `tenants: "a\a" is not a name`}},
		{`{"tenants": {"a": {"fuel": 1e9, "fuel": 2e9}, "a": {}}}`, []string{"tenants.a.fuel: is given twice", "line 1, column 47: tenants.a: is given twice"}},
		{`{"defaults": {` + strings.Repeat(`"x": 1,`, 80) + `"y": 1}}`, slices.Repeat([]string{""}, 50)},
	} {
		table, err := Parse([]byte(tt.text))
		var bad *jsonfile.Error
		if !errors.As(err, &bad) || table != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if len(bad.Problems) != len(tt.want) {
			t.Errorf("%s: %d problems, want %d:\n%s", tt.text, len(bad.Problems), len(tt.want), err)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(bad.Problems[i], want) {
				t.Errorf("%s:\n got %s\nwant %s", tt.text, bad.Problems[i], want)
			}
			if !strings.Contains(err.Error(), bad.Problems[i]) {
				t.Errorf("%s: the message leaves out %s", tt.text, bad.Problems[i])
			}
		}
	}
}

// FuzzParseLimits: no text gives a table with a limit out of its bounds, and
// none makes the parser fail in another way than by name.
func FuzzParseLimits(f *testing.F) {
	f.Add([]byte(layered))
	f.Add([]byte(`{"tenants": {"a": {"plugins": {"p": {"memory_bytes": "64KiB"}}}}}`))
	f.Add([]byte(`{"defaults": [[[{"a": 1}]]]} x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Parse(text)
		if err != nil {
			if bad := (*jsonfile.Error)(nil); !errors.As(err, &bad) || len(bad.Problems) == 0 || table != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		tenants, plugins := table.Named()
		for _, tenant := range append(tenants, "other") {
			for _, plugin := range append(plugins, "other") {
				l := table.Limits(tenant, plugin)
				for i := range limitSettings {
					s := &limitSettings[i]
					if v := s.get(&l); v < s.least || v > s.most {
						t.Fatalf("%q: %s of %s/%s is %d", text, s.name, tenant, plugin, v)
					}
				}
			}
		}
	})
}

// A run of several plugins' steps is held to the strictest.
func TestLeastLimits(t *testing.T) {
	table, err := Parse([]byte(`{"plugins": {"a": {"fuel": 5000000, "host_calls": 70}, "b": {"fuel": 6000000, "log_lines": 5}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	if got := table.Least("t"); got != want {
		t.Errorf("of no plugin: %+v", got)
	}
	want.Fuel, want.HostCalls = 5_000_000, 70
	if got := table.Least("t", "a", "other"); got != want {
		t.Errorf("of one: %+v", got)
	}
	want.LogLines = 5
	for _, plugins := range [][]string{{"a", "b"}, {"b", "other", "a"}} {
		if got := table.Least("t", plugins...); got != want {
			t.Errorf("of %v: %+v", plugins, got)
		}
	}
	if got := (*Table)(nil).Least("t", "a", "b"); got != Default() {
		t.Errorf("of nothing said: %+v", got)
	}
}

// A composed workflow is held to what is set under its own name too, but never gets more
// than its plugins have.
func TestComposedLimits(t *testing.T) {
	table, err := Parse([]byte(`{"plugins": {"a": {"fuel": 50000000000, "host_calls": 70}, "f": {"wall_time": "5s", "host_calls": 90}},
		"tenants": {"t": {"plugins": {"f": {"log_lines": 5}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Fuel, want.HostCalls, want.WallTime, want.LogLines = 50_000_000_000, 70, 5*time.Second, 5
	if got := table.Composed("t", "f", "a"); got != want {
		t.Errorf("of a workflow that is named: %+v", got)
	}
	want.WallTime = Default().WallTime
	want.LogLines = Default().LogLines
	if got := table.Composed("t", "g", "a"); got != want {
		t.Errorf("of a workflow that is not named: %+v", got)
	}
	if got := table.Composed("t", "f"); got != table.Limits("t", "f") {
		t.Errorf("of a workflow without plugins: %+v", got)
	}
	if got := (*Table)(nil).Composed("t", "f", "a"); got != Default() {
		t.Errorf("of no settings: %+v", got)
	}
}

func TestRetentionSettings(t *testing.T) {
	table, err := Parse([]byte(`{"defaults": {"retention_age": "720h", "retention_runs": 100},
		"tenants": {"keeps": {"retention_age": 0, "retention_runs": 0}, "few": {"retention_runs": 5}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]struct {
		age  time.Duration
		runs int
	}{"any": {720 * time.Hour, 100}, "keeps": {0, 0}, "few": {720 * time.Hour, 5}} {
		if age, runs := table.Retention(tenant); age != want.age || runs != want.runs {
			t.Errorf("Retention(%s) = %s, %d, want %s, %d", tenant, age, runs, want.age, want.runs)
		}
	}
	for text, want := range map[string]bool{
		`{}`: false, `{"defaults": {"retention_age": "1m"}}`: true, `{"tenants": {"t": {"retention_runs": 1}}}`: true,
		`{"tenants": {"t": {"retention_runs": 0}}}`: false,
	} {
		table, err := Parse([]byte(text))
		if err != nil || table.Retains() != want {
			t.Errorf("Retains of %s: want %t; %v", text, want, err)
		}
	}
	for _, text := range []string{`{"defaults": {"retention_age": 60}}`, `{"defaults": {"retention_age": "1s"}}`,
		`{"defaults": {"retention_runs": "many"}}`, `{"plugins": {"p": {"retention_runs": 1}}}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
	if (*Table)(nil).Retains() {
		t.Error("nothing is set, and runs are deleted")
	}
}
