package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi/abuse"
)

// door is an Access with one key, which counts how often it is asked.
type door struct {
	host.Access
	keys  map[string]bool
	asked int
}

func (d *door) Keyless() bool { return false }

func (d *door) Enter(key, _ string) (host.Grant, error) {
	if d.asked++; !d.keys[key] {
		return host.Grant{}, &host.Error{Code: host.CodeUnauthenticated, Message: "wrong"}
	}
	return host.Grant{Tenant: "acme", Role: host.RoleRead}, nil
}

// knocking is a server behind a door, and a clock that the test sets.
type knocking struct {
	*Server
	door *door
	now  time.Time
	told []bool
}

func newKnocking(perMinute int) *knocking {
	k := &knocking{door: &door{keys: map[string]bool{"right": true, "new": true}}, now: time.Unix(1000, 0)}
	k.Server = New(Config{Access: k.door, WrongKeys: perMinute, WrongKey: func(refused bool) { k.told = append(k.told, refused) }})
	k.wrong = abuse.NewWrongKeys(perMinute, func() time.Time { return k.now })
	return k
}

// knock returns the code of the answer to a key from an address, "" if the key is
// accepted.
func (k *knocking) knock(from, key string) host.Code {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/workflows", nil)
	r.RemoteAddr = from
	_, err := k.enterSlowly(r, key, "")
	if err == nil {
		return ""
	}
	return host.CodeOf(err)
}

func (k *knocking) want(t *testing.T, from, key string, want host.Code) {
	t.Helper()
	if got := k.knock(from, key); got != want {
		t.Errorf("%s from %s: %q, want %q", key, from, got, want)
	}
}

func TestWrongKeysAreSlowedDown(t *testing.T) {
	k := newKnocking(3)
	const here, neighbour, elsewhere = "192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1"
	k.want(t, neighbour, "right", "")
	for range 3 {
		k.want(t, here, "wrong", host.CodeUnauthenticated)
	}
	asked := k.door.asked
	for range 100 {
		k.want(t, here, "wrong", host.CodeLimitExceeded)
	}
	if k.door.asked != asked {
		t.Error("a key was looked up though its address had tried too many")
	}
	k.want(t, here, "", host.CodeUnauthenticated)           // a request without a key is not a wrong key
	k.want(t, neighbour, "right", "")                       // behind the same NAT
	k.want(t, neighbour, "new", host.CodeLimitExceeded)     // cannot be distinguished from a wrong key
	k.want(t, elsewhere, "new", "")                         // another address
	k.want(t, here, "new", "")                              // the key was right from the other address
	k.want(t, elsewhere, "other", host.CodeUnauthenticated) // the address has all its wrong keys left
	k.now = k.now.Add(20 * time.Second)                     // one of three a minute
	k.want(t, here, "wrong", host.CodeUnauthenticated)
	k.want(t, here, "wrong", host.CodeLimitExceeded)
	refused := 0
	for _, r := range k.told {
		if r {
			refused++
		}
	}
	if refused != 102 || len(k.told) != 102+5 {
		t.Errorf("told of %d wrong keys, %d refused", len(k.told), refused)
	}
	delete(k.door.keys, "right")
	k.want(t, neighbour, "right", host.CodeUnauthenticated) // the key was revoked
	k.want(t, neighbour, "right", host.CodeLimitExceeded)
}

func TestWrongKeysSayWhenToComeAgain(t *testing.T) {
	k := newKnocking(6)
	for range 6 {
		k.knock("192.0.2.1:1", "wrong")
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/workflows", nil)
	r.Header.Set("Authorization", "Bearer wrong")
	w := httptest.NewRecorder()
	k.Handler().ServeHTTP(w, r) // from 192.0.2.1, as httptest has it
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "10" {
		t.Errorf("%d, Retry-After %q: %s", w.Code, w.Header().Get("Retry-After"), w.Body)
	}
}

func TestWrongKeysMayBeUnlimited(t *testing.T) {
	k := newKnocking(0)
	for range 1000 {
		k.want(t, "192.0.2.1:1", "wrong", host.CodeUnauthenticated)
	}
}

// The audit log has the first wrong key of an address and the first key that is refused
// without a look-up, only a few in all, and how many others there were.
func TestWrongKeysAreNoted(t *testing.T) {
	k := newKnocking(3)
	var notes []string
	k.cfg.NoteWrongKey = func(_ context.Context, address string, refused bool, others int) {
		notes = append(notes, fmt.Sprint(address, " ", refused, " ", others))
	}
	for range 10 {
		k.knock("192.0.2.1:1", "wrong")
	}
	k.want(t, "192.0.2.9:1", "right", "")
	k.knock("192.0.2.2:1", "wrong")
	if want := "[192.0.2.1/32 false 0 192.0.2.1/32 true 2 192.0.2.2/32 false 6]"; fmt.Sprint(notes) != want {
		t.Errorf("noted were %v, want %s", notes, want)
	}
	for i := range 1000 {
		k.knock(fmt.Sprintf("198.51.100.%d:1", i%250), "wrong")
	}
	if len(notes) != abuse.NotesPerHour {
		t.Errorf("%d notes of a thousand addresses", len(notes))
	}
	k.now = k.now.Add(time.Hour)
	k.knock("192.0.2.7:1", "wrong")
	if want := "192.0.2.7/32 false 993"; notes[len(notes)-1] != want {
		t.Errorf("an hour later: %q, want %q", notes[len(notes)-1], want)
	}
}
