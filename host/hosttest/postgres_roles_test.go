package hosttest_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// documented returns the indented block of docs/postgres.md that begins with a text, as
// statements.
func documented(t *testing.T, begin string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(hosttest.Root(), "docs", "postgres.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "\n    "+begin)
	if !found {
		t.Fatalf("docs/postgres.md has no block that begins with %q", begin)
	}
	block, _, _ = strings.Cut(begin+block, "\n\n")
	var statements []string
	for line := range strings.Lines(block) {
		statements = append(statements, strings.TrimSuffix(strings.TrimSpace(line), ";"))
	}
	return statements
}

// as returns an address with another user.
func as(t *testing.T, address, database, user, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(user, password), "/"+database
	return u.String()
}

// makeRoles executes the block of docs/postgres.md that begins with a text, for another
// role, database and password than those of the page, and without the statements that
// contain a text ("": all).
func makeRoles(t *testing.T, pg *pgtest.Server, begin, role, database, password, without string) {
	t.Helper()
	word := regexp.MustCompile(`\bweft\b`)
	admin, inside := pg.URL, strings.Replace(pg.URL, "/weft?", "/"+database+"?", 1)
	for _, statement := range documented(t, begin) {
		if statement == `\connect weft` {
			admin = inside
			continue
		}
		if without != "" && strings.Contains(statement, without) {
			continue
		}
		statement = strings.NewReplacer("SCHEMA weft", "SCHEMA {}").Replace(statement)
		statement = strings.ReplaceAll(word.ReplaceAllString(statement, role), "{}", "weft")
		statement = strings.ReplaceAll(statement, "'secret'", "'"+password+"'")
		if strings.Contains(begin, "backup") && !strings.HasPrefix(statement, "CREATE ROLE") {
			admin = inside
		}
		pg.Exec(t, admin, statement)
	}
}

// A server works with exactly the roles and rights that the page documents, and so do a
// check and a backup with the role that only reads. Neither role can do more.
func TestDocumentedRoles(t *testing.T) {
	const role, database, password = "weft_documented", "weft_documented", "the-documented-secret"
	pg := pgtest.Own(t)
	execute := func(begin string) { makeRoles(t, pg, begin, role, database, password, "") }
	execute("CREATE ROLE weft LOGIN")
	store := as(t, pg.URL, database, role, password)
	data := t.TempDir()
	p := hosttest.Serve(t, data, "--store", store)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	expect(t, p.Result(t, "counter", in("s", nil)), "1")
	log := p.Log()
	p = kill(t, p, data, "--store", store)
	expect(t, p.Result(t, "counter", in("s", nil)), "2")

	execute("CREATE ROLE weft_backup LOGIN")
	reader := as(t, pg.URL, database, "weft_backup", "secret2")
	wantWeft(t, "no faults", "check", "--online", "--store", reader)
	wantWeft(t, "verified", "backup", filepath.Join(t.TempDir(), "copy.db"), "--store", reader)
	if code, out := weft(t, "compact", "--store", reader); code == 0 {
		t.Errorf("the role that only reads compacts: %s", out)
	}
	pg.Crash(t)
	pg.Again(t)
	p = kill(t, p, data, "--store", store)
	expect(t, p.Result(t, "counter", in("s", nil)), "3")
	if code := p.Interrupt(t); code != 0 {
		t.Errorf("the server exits with %d", code)
	}
	wantWeft(t, " MB, and has ", "compact", "--reindex", "--store", store)
	wantWeft(t, "no faults", "check", "--store", store)
	moved := filepath.Join(t.TempDir(), "moved")
	wantWeft(t, "verified", "migrate-store", store, moved)
	_, wrong := weft(t, "check", "--store", as(t, pg.URL, database, role, password+"x"))
	for _, text := range []string{log, p.Log(), wrong} {
		if strings.Contains(text, password) {
			t.Errorf("the password is in %s", text)
		}
	}
	rights := pg.Query(t, strings.Replace(pg.URL, "/weft?", "/"+database+"?", 1),
		`SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls OR has_schema_privilege(rolname, 'public', 'CREATE')
			OR has_database_privilege(rolname, current_database(), 'CREATE, TEMPORARY') OR EXISTS (SELECT FROM pg_auth_members WHERE member = oid)
			FROM pg_roles WHERE rolname = '`+role+`'`)
	if rights != "false" {
		t.Error("the role has more rights than its schema")
	}
}
