package resource

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// records is a store of resources.
type records struct {
	kv.Store
	list map[string]host.ResourceRecord
	uses []host.ResourceUse
}

func (r *records) PutResource(_ context.Context, rec host.ResourceRecord) error {
	r.list[rec.Tenant+"/"+rec.Name] = rec
	return nil
}

func (r *records) DeleteResource(_ context.Context, tenant, name string) error {
	delete(r.list, tenant+"/"+name)
	return nil
}

func (r *records) ResourceRecords(context.Context, string) (list []host.ResourceRecord, err error) {
	for _, rec := range r.list {
		list = append(list, rec)
	}
	return list, nil
}

func (r *records) AddResourceUse(_ context.Context, list []host.ResourceUse) error {
	r.uses = append(r.uses, list...)
	return nil
}

func (r *records) ResourceUses(context.Context, string) ([]host.ResourceUse, error) {
	return r.uses, nil
}

const theSecret = "sk-0123456789abcdef"

func mustKeys(t *testing.T, text string) *Keys {
	t.Helper()
	k, err := ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var (
	keyOne = strings.Repeat("11", 32)
	keyTwo = strings.Repeat("22", 32)
)

func newTestService(t *testing.T, store Store, file *Table, keys *Keys) *Service {
	t.Helper()
	s, err := NewService(t.Context(), Config{Store: store, File: file, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func withSecret(url string) string {
	return fmt.Sprintf(`{"kind": "http", "settings": {"base_url": %q, "networks": ["127.0.0.1"]},
	  "secrets": {"token": {"value": %q, "header": "Authorization", "prefix": "Bearer "}},
	  "grants": [{"workflow": "w"}]}`, url, theSecret)
}

// A definition holds at once, and for the next server that has the key; its secret is
// in no record and in no answer.
func TestServiceSealsSecrets(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+theSecret {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer web.Close()
	store := &records{list: map[string]host.ResourceRecord{}}
	s := newTestService(t, store, nil, mustKeys(t, keyOne))
	change := host.ResourceChange{Tenant: "a", Name: "crm", Text: []byte(withSecret(web.URL)), Operator: true}
	info, created, err := s.PutResource(t.Context(), change)
	if err != nil || !created || info.Kind != KindHTTP || info.KeyID == "" {
		t.Fatalf("%+v, %v, %v", info, created, err)
	}
	all, _ := json.Marshal([]any{store.list, info, string(info.Definition), string(store.list["a/crm"].Sealed)})
	if strings.Contains(string(all), theSecret) {
		t.Errorf("the secret is in %s", all)
	}
	calls := func(s *Service) int64 {
		t.Helper()
		user := host.ResourceUser{Tenant: "a", Workflow: "w"}
		if _, err := s.Grant(user, abi.ResourceDecl{Name: "crm", Kind: KindHTTP}); err != nil {
			t.Fatal(err)
		}
		payload, err := abi.EncodeValue(map[string]any{"path": "x"})
		if err != nil {
			t.Fatal(err)
		}
		raw, fail := s.Call(t.Context(), host.ResourceCall{User: user, Resource: "crm", Method: MethodRequest, Payload: payload, Mode: host.ResourceRepeat})
		if fail != nil {
			t.Fatal(fail)
		}
		v, _ := abi.DecodeValue(raw)
		return v.(map[string]any)["status"].(int64)
	}
	if status := calls(s); status != 200 {
		t.Errorf("status %d", status)
	}
	// The next server has a newer key, and the old one still.
	next := newTestService(t, store, nil, mustKeys(t, "# new\n"+keyTwo+"\n\n"+keyOne+"\n"))
	if status := calls(next); status != 200 {
		t.Errorf("status %d", status)
	}
	again, created, err := next.PutResource(t.Context(), change)
	if err != nil || created || again.KeyID == info.KeyID {
		t.Errorf("%+v, %v, %v", again, created, err)
	}
	if got, err := next.Resource(t.Context(), "a", "crm"); err != nil || len(got.Uses) != 1 || got.Uses[0].Calls != 1 || got.Uses[0].Sent == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	// Without the key it is there and cannot be used; nor can what was moved.
	for _, keys := range []*Keys{nil, mustKeys(t, keyOne)} {
		lost := newTestService(t, store, nil, keys)
		_, err := lost.Grant(host.ResourceUser{Tenant: "a", Workflow: "w"}, abi.ResourceDecl{Name: "crm", Kind: KindHTTP})
		if host.CodeOf(err) != host.CodePermissionDenied || !strings.Contains(err.Error(), again.KeyID) {
			t.Errorf("without the key: %v", err)
		}
	}
	moved := store.list["a/crm"]
	moved.Tenant = "b"
	store.list["b/crm"] = moved
	other := newTestService(t, store, nil, mustKeys(t, keyTwo))
	if got, err := other.Resource(t.Context(), "b", "crm"); err != nil || !strings.Contains(got.Problem, "another resource's") {
		t.Errorf("moved to another tenant: %+v, %v", got, err)
	}
}

// What a tenant may not define.
func TestServiceRefuses(t *testing.T) {
	file, err := ParseFile([]byte(`{"resources": {"house": {"kind": "http", "settings": {"base_url": "https://house.example/"},
	  "grants": [{"tenant": "a", "workflow": "*"}]}}}`), Sources{})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestService(t, &records{list: map[string]host.ResourceRecord{}}, file, nil)
	plain := `{"kind": "http", "settings": {"base_url": "https://x.example/"}, "grants": [{"workflow": "w"}]}`
	for _, c := range []struct {
		name, text string
		code       host.Code
		says       string
	}{
		{"x", withSecret("https://x.example/"), host.CodePermissionDenied, "networks"},
		{"x", strings.Replace(withSecret("https://x.example/"), `, "networks": ["127.0.0.1"]`, "", 1), host.CodeFailedPrecondition, "--resource-key-file"},
		{"x", strings.Replace(plain, `"workflow"`, `"tenant": "b", "workflow"`, 1), host.CodeInvalidArgument, `"tenant"`},
		{"x", strings.Replace(plain, `"grants"`, `"secrets": {"t": {"env": "HOME", "header": "X"}}, "grants"`, 1), host.CodeInvalidArgument, "operator's"},
		{"x", strings.Replace(plain, `"grants"`, `"secrets": {"t": {"file": "/etc/passwd", "header": "X"}}, "grants"`, 1), host.CodeInvalidArgument, "operator's"},
		{"x", strings.Replace(plain, `"grants"`, `"secrets": {"t": "`+theSecret+`"}, "grants"`, 1), host.CodeInvalidArgument, "secrets.t"},
		{"x", `{`, host.CodeInvalidArgument, "line 1"},
		{"house", plain, host.CodeConflict, "operator's"},
	} {
		_, _, err := s.PutResource(t.Context(), host.ResourceChange{Tenant: "a", Name: c.name, Text: []byte(c.text)})
		if host.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), theSecret) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
	if _, _, err := s.PutResource(t.Context(), host.ResourceChange{Tenant: "b", Name: "house", Text: []byte(plain)}); err != nil {
		t.Errorf("the name of a file's resource that the tenant has no grant of: %v", err)
	}
	if err := s.DeleteResource(t.Context(), "b", "house"); err != nil {
		t.Error(err)
	}
	if err := s.DeleteResource(t.Context(), "b", "house"); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if list, err := s.Resources(t.Context(), "a"); err != nil || len(list) != 1 || !list[0].File || list[0].Definition != nil {
		t.Errorf("%+v, %v", list, err)
	}
}
