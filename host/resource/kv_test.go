package resource

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// shelf is a space in memory, whose writes hold at once.
type shelf struct {
	items map[string]kv.Item
	last  uint64
	fails error
}

func (s *shelf) Get(key string) (kv.Item, bool, error) {
	item, ok := s.items[key]
	return item, ok, s.fails
}

func (s *shelf) List(q kv.Query) (items []kv.Item, more bool, err error) {
	for _, key := range slices.Sorted(maps.Keys(s.items)) {
		if key <= q.After || !strings.HasPrefix(key, q.Prefix) {
			continue
		}
		if len(items) == q.Limit {
			return items, true, s.fails
		}
		items = append(items, s.items[key])
	}
	return items, false, s.fails
}

func (s *shelf) Totals() kv.Totals {
	t := kv.Totals{Last: s.last, Keys: int64(len(s.items))}
	for _, i := range s.items {
		t.Bytes += i.Size()
	}
	return t
}

func (s *shelf) Next() uint64 { return s.last + 1 }

// do makes a call, and gives its answer or its error's code as JSON.
func (s *shelf) do(t *testing.T, k kvKind, method, payload string) string {
	t.Helper()
	raw, err := abi.FromJSON([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	a := k.operate(&host.ResourceCall{Method: method, Payload: raw}, s)
	if a.Err != nil {
		if a.Value != nil || a.Write != nil {
			t.Errorf("%s %s: an answer and an error", method, payload)
		}
		return fmt.Sprintf("%s (%s)", a.Err.Code, a.Err.Message)
	}
	if w := a.Write; w != nil {
		s.last++
		s.items[w.Key] = kv.Item{Key: w.Key, Version: s.last, Value: w.Value}
		if w.Value == nil {
			delete(s.items, w.Key)
		}
	}
	out, err := abi.ToJSON(a.Value)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestKVMethods(t *testing.T) {
	s := &shelf{items: map[string]kv.Item{}}
	k := kvKind{kvSettings{keyBytes: 5, valueBytes: 20, keys: 3, bytes: 40}}
	deep := strings.Repeat("[", 62) + strings.Repeat("]", 62)
	for i, c := range []struct{ method, payload, want string }{
		{"get", `{"key":"a"}`, `null`},
		{"set", `{"key":"a","value":null}`, `{"version":1}`},
		{"get", `{"key":"a"}`, `{"value":null,"version":1}`},
		{"set", `{"key":"a","value":{"x":[1,2.5,"t"]}}`, `{"version":2}`},
		{"get", `{"key":"a","if_version":null}`, `invalid_message (unknown name "if_version"`},
		{"set", `{"key":"a","value":1,"if_version":1}`, `conflict (the key "a" has version 2, not 1`},
		{"set", `{"key":"a","value":1,"if_version":0}`, `conflict (the key "a" is there, with version 2`},
		{"set", `{"key":"b","value":1,"if_version":2}`, `conflict (the key "b" does not exist, but version 2`},
		{"set", `{"key":"a","value":1,"if_version":2}`, `{"version":3}`},
		{"set", `{"key":"b","value":"x","if_version":0}`, `{"version":4}`},
		{"increment", `{"key":"a"}`, `{"value":2,"version":5}`},
		{"increment", `{"key":"a","by":-4.0}`, `{"value":-2,"version":6}`},
		{"increment", `{"key":"a","by":0.5}`, `invalid_message (by must be a whole number`},
		{"increment", `{"key":"b"}`, `failed_precondition (what is under the key "b"`},
		{"increment", `{"key":"n","by":9223372036854775807}`, `{"value":9223372036854775807,"version":7}`},
		{"increment", `{"key":"n"}`, `failed_precondition (the number under the key "n" would leave`},
		{"increment", `{"key":"n","by":0}`, `{"value":9223372036854775807,"version":8}`},
		{"increment", `{"key":"m"}`, `limit_exceeded (the resource has 3 keys, the maximum (limit keys)`},
		{"set", `{"key":"abcdef","value":1}`, `limit_exceeded (the key has 6 bytes, more than 5 (limit key_bytes)`},
		{"set", `{"key":"b","value":"01234567890123456789"}`, `limit_exceeded (the value has 21 bytes, more than 20 (limit value_bytes)`},
		{"set", `{"key":"b","value":"0123456789012345678"}`, `{"version":9}`},
		{"set", `{"key":"a","value":"0123456789"}`, `limit_exceeded (the resource would keep 43 bytes, more than 40 (limit bytes)`},
		{"list", `{}`, `{"items":[{"key":"a","version":6},{"key":"b","version":9},{"key":"n","version":8}]}`},
		{"list", `{"limit":1,"values":true}`, `{"next":"a","items":[{"key":"a","value":-2,"version":6}]}`},
		{"list", `{"prefix":"b","after":"a"}`, `{"items":[{"key":"b","version":9}]}`},
		{"list", `{"limit":1001}`, `invalid_message (limit must be a number from 1 to 1000`},
		{"delete", `{"key":"b","if_version":0}`, `invalid_message (if_version must be`},
		{"delete", `{"key":"b","if_version":1}`, `conflict (`},
		{"delete", `{"key":"b","if_version":9}`, `{"deleted":true}`},
		{"delete", `{"key":"b"}`, `{"deleted":false}`},
		{"set", `{"key":"d","value":` + deep + `}`, `invalid_message (the value cannot be kept`},
		{"set", `{"key":"d"}`, `invalid_message (the value is missing: the payload of set is {key, value, if_version?})`},
		{"set", `{"value":1}`, `invalid_message (the key is missing, or empty`},
		{"get", `{"key":"a\u0000"}`, `invalid_message (the key "a\x00" has a control character`},
		{"get", `{"key":7}`, `invalid_message (key must be a text`},
		{"get", `[]`, `invalid_message (the payload is not a map`},
		{"drop", `{}`, `not_found (a resource of the kind kv has no method "drop"`},
	} {
		got := s.do(t, k, c.method, c.payload)
		if got != c.want && (strings.HasPrefix(c.want, "{") || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%d: %s %s: %s, want %s", i, c.method, c.payload, got, c.want)
		}
	}
	s.fails = errors.New("the disk is gone")
	for method, payload := range map[string]string{"get": `{"key":"a"}`, "list": `{}`, "increment": `{"key":"a"}`} {
		if got := s.do(t, k, method, payload); !strings.HasPrefix(got, "unavailable") {
			t.Errorf("%s of a store that does not work: %s", method, got)
		}
	}
}

// A definition of the kind kv is only what it has a use for; a grant's space is the
// tenant's own, and that of the definition.
func TestKVDefinition(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"kv","grants":[{"tenant":"*","workflow":"*"}]}`:                                        "",
		`{"settings":{"keys":3,"bytes":1048576,"key_bytes":9,"value_bytes":8},"kind":"kv"}`:             "",
		`{"kind":"kv","settings":{"keys":1000001}}`:                                                     "settings.keys: must be a whole number from 1 to 1000000",
		`{"kind":"kv","settings":{"base_url":"https://x.example/"}}`:                                    `settings: unknown name "base_url"`,
		`{"kind":"kv","secrets":{}}`:                                                                    `unknown name "secrets"`,
		`{"kind":"kv","mode":"repeat"}`:                                                                 `unknown name "mode"`,
		`{"kind":"kv","grants":[{"tenant":"*","workflow":"*","in_flight":2}]}`:                          `grants[0]: unknown name "in_flight"`,
		`{"kind":"vk","grants":[{"tenant":"*","workflow":"*","allow":[{"url":"https://x.example/"}]}]}`: `there is no kind "vk": use "http", "llm" or "kv"`,
	} {
		_, err := Parse("cache", []byte(text), Sources{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestKVGrant(t *testing.T) {
	file, err := ParseFile([]byte(`{"resources":{"both":{"kind":"kv","grants":[{"tenant":"*","workflow":"w"}]}}}`), Sources{})
	if err != nil {
		t.Fatal(err)
	}
	s := newTestService(t, &records{list: map[string]host.ResourceRecord{}}, file, nil)
	text := `{"kind":"kv","grants":[{"workflow":"*"}]}`
	info, _, err := s.PutResource(t.Context(), host.ResourceChange{Tenant: "a", Name: "own", Text: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	user := host.ResourceUser{Tenant: "a", Workflow: "w"}
	for name, want := range map[string]kv.Space{"both": {Tenant: "a", Resource: "both"}, "own": {Tenant: "a", Resource: "own", Made: info.Created}} {
		g, err := s.Grant(user, abi.ResourceDecl{Name: name, Kind: KindKV})
		if err != nil || g.Space != want || g.ModeOf("get") != host.ResourceReadOnly || g.ModeOf("set") != host.ResourceRepeat {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		call := host.ResourceCall{User: user, Resource: name, Method: "increment", Payload: must(t, `{"key":"n"}`)}
		data := &shelf{items: map[string]kv.Item{}}
		if a := s.Operate(call, g.Space, data); a.Err != nil || a.Write == nil {
			t.Errorf("%s: %+v", name, a)
		}
		older := g.Space
		older.Made += 7
		if a := s.Operate(call, older, data); a.Err == nil || a.Err.Code != "permission_denied" {
			t.Errorf("%s of another definition: %+v", name, a)
		}
		call.User.Workflow = "other"
		if a := s.Operate(call, g.Space, data); name == "both" && (a.Err == nil || a.Err.Code != "permission_denied") {
			t.Errorf("%s for another workflow: %+v", name, a)
		}
	}
	_, _, err = s.PutResource(t.Context(), host.ResourceChange{Tenant: "a", Name: "own", Text: []byte(`{"kind":"http","settings":{"base_url":"https://x.example/"},"grants":[{"workflow":"*"}]}`)})
	if host.CodeOf(err) != host.CodeConflict {
		t.Errorf("a change of the kind: %v", err)
	}
	uses, err := s.Resource(t.Context(), "a", "own")
	if err != nil || len(uses.Uses) != 2 || uses.Uses[1].Calls != 2 || uses.Uses[1].Failed != 1 {
		t.Errorf("used: %+v, %v", uses.Uses, err)
	}
}

func must(t *testing.T, text string) abi.Raw {
	t.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
