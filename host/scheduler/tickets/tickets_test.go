package tickets

import (
	"slices"
	"testing"

	"github.com/weftrun/weft/host/state"
)

// group are the holders of a test, by name.
type group struct {
	gone    []string
	granted []string
}

func (c *group) Wanted(h string) bool { return !slices.Contains(c.gone, h) }
func (c *group) Granted(h string)     { c.granted = append(c.granted, h) }

func paths(t *testing.T, texts ...string) (list []state.Path) {
	t.Helper()
	for _, text := range texts {
		p, err := state.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// A ticket goes to the first who waits and still wants it, and to those behind who want
// other paths; others wait for the new holder. Clients are woken, and take none.
func TestTicketsAreHandedOn(t *testing.T) {
	c := &group{gone: []string{"left"}}
	var table Table[string]
	table.Init(c)
	table.Take("first", paths(t, "a"))
	table.Take("first", paths(t, "z")) // it has one
	for _, w := range []struct{ who, path string }{{"left", "a"}, {"second", "a.b"}, {"third", "a"}, {"beside", "a.c"}, {"impatient", "a"}} {
		if !table.Queue(w.who, paths(t, w.path)) {
			t.Errorf("%s does not wait", w.who)
		}
	}
	free := table.Await(paths(t, "a.b"))
	if table.Queue("elsewhere", paths(t, "b")) || table.Await(paths(t, "z")) != nil || free == nil {
		t.Error("somebody waits for a path that nobody has, or does not wait for one that somebody has")
	}
	table.GiveUp("impatient")
	table.GiveUp("first")
	if want := []string{"second", "beside"}; !slices.Equal(c.granted, want) || table.Len() != 2 || !table.Holds("second") {
		t.Errorf("granted to %v, want %v", c.granted, want)
	}
	select {
	case <-free:
	default:
		t.Error("the client is not woken")
	}
	table.GiveUp("second")
	if want := []string{"second", "beside"}; !slices.Equal(c.granted, want) {
		t.Errorf("granted to %v, though one of them covers what is wanted", c.granted)
	}
	table.GiveUp("beside")
	if want := []string{"second", "beside", "third"}; !slices.Equal(c.granted, want) || table.Len() != 1 {
		t.Errorf("granted to %v, want %v", c.granted, want)
	}
	if table.GiveUp("third"); table.Len() != 0 {
		t.Error("a ticket is left")
	}
}
