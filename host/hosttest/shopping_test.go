package hosttest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// The example flow, as both compilers build its functions.
func TestShoppingList(t *testing.T) {
	flow, err := os.ReadFile(filepath.Join(hosttest.Root(), "plugins", "shopping-list", "flow.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range languages("tinygo", "go") {
		t.Run(lang, func(t *testing.T) {
			h := hosttest.New(t, hosttest.Config{})
			h.Load(t, lang, "shopping-list")
			putFlow(t, h, "shopping-list", json.RawMessage(flow))
			for _, turn := range []struct{ say, want string }{
				{"list", "Shopping list is empty."},
				{"remove milk", "Shopping list is empty. Cannot remove 'milk'."},
				{"add milk, Bread and eggs", "Added 'milk' to the shopping list.\nAdded 'Bread' to the shopping list.\nAdded 'eggs' to the shopping list."},
				{"  ADD   MILK  ", "'MILK' is already in the shopping list."},
				{"list", "Shopping list:\n- milk\n- Bread\n- eggs"},
				{"remove bread and tea", "Removed 'Bread' from the shopping list.\n'tea' not found in the shopping list."},
				{"List", "Shopping list:\n- milk\n- eggs"},
				{"clear", "Removed all items from the shopping list."},
				{"list", "Shopping list is empty."},
				{"what can you do?", "I understand: add X, Y and Z; remove X; list; clear."},
			} {
				want, _ := json.Marshal(turn.want)
				expect(t, h.Result(t, "shopping-list", in("s", fields{"input": turn.say})), string(want))
			}
			for _, start := range []string{`{}`, `{"input": null}`, `{"input": 7}`, `{"input": ["list"]}`} {
				status, out := h.Do(t, http.MethodPost, "/workflows/shopping-list/run", `{"start_event": `+start+`}`)
				if status != http.StatusBadRequest || !strings.Contains(string(out), "input") {
					t.Errorf("%s: %d %s", start, status, out)
				}
			}
		})
	}
}
