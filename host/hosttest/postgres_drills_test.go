package hosttest_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// The drills of docs/postgres.md, played with the commands and the roles of the page: a
// backup and a restore into another database, and PostgreSQL's own dump and restore to
// another server.
func TestDrills(t *testing.T) {
	const role, database, password = "weft_documented", "weft_documented", "the-documented-secret"
	pg, other := pgtest.Own(t), pgtest.Own(t)
	makeRoles(t, pg, "CREATE ROLE weft LOGIN", role, database, password, "")
	makeRoles(t, other, "CREATE ROLE weft LOGIN", role, database, password, "SCHEMA")
	first, moved := as(t, pg.URL, database, role, password), as(t, other.URL, database, role, password)
	reader := as(t, pg.URL, database, "weft_backup", "secret2")
	restored := pg.Database(t, "")
	admin := strings.Replace(other.URL, "/weft?", "/"+database+"?", 1)
	dir := t.TempDir()
	command := func(text string, pairs ...string) []string {
		t.Helper()
		return strings.Fields(strings.NewReplacer(pairs...).Replace(text))
	}
	p := hosttest.Serve(t, t.TempDir(), "--store", first)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	expect(t, p.Result(t, "counter", in("s", nil)), "1")

	makeRoles(t, pg, "CREATE ROLE weft_backup LOGIN", role, database, password, "")
	makeRoles(t, other, "CREATE ROLE weft_backup LOGIN", role, database, password, "SCHEMA")
	backup := documented(t, "weft backup --store postgres://weft_backup@db.internal/weft before")
	file := filepath.Join(dir, "before-upgrade.db")
	wantWeft(t, "backed up to", command(backup[0], "postgres://weft_backup@db.internal/weft", reader, "before-upgrade.db", file)[1:]...)
	expect(t, p.Result(t, "counter", in("s", nil)), "2") // is not in the backup
	for _, line := range documented(t, "weft restore before-upgrade.db") {
		wantWeft(t, "", command(line, "postgres://weft@db.internal/weft_restored", restored, "before-upgrade.db", file)[1:]...)
	}
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("the server exits with %d", code)
	}
	for _, line := range documented(t, "pg_dump --format=custom") {
		args := command(line, "postgres://weft@db.internal/weft", first, "postgres://postgres@new.internal/weft", admin,
			"postgres://weft@new.internal/weft", moved, "weft.dump", filepath.Join(dir, "weft.dump"))
		if args[0] == "weft" {
			wantWeft(t, "no faults", args[1:]...)
			continue
		}
		tool := tool(t, args[0])
		if out, err := exec.CommandContext(t.Context(), tool, args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	for store, want := range map[string]string{restored: "2", moved: "3"} {
		p := hosttest.Serve(t, t.TempDir(), "--store", store)
		expect(t, p.Result(t, "counter", in("s", nil)), want)
		if code := p.Interrupt(t); code != 0 {
			t.Errorf("the server exits with %d", code)
		}
	}
}

// tool returns the path of a tool of PostgreSQL.
func tool(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		return slices.Max(found)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s on this machine", name)
	}
	return path
}
