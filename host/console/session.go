package console

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Bounds of sessions.
const (
	MaxSessions = 1000           // of a tenant at a time; the one of the tenant that was unused for longest makes room
	MaxAge      = 12 * time.Hour // after the sign-in
	MaxIdle     = time.Hour      // without a request
	maxBody     = 4 << 10        // bytes of a sign-in
)

// Header marks the requests of the console. A page of another origin cannot set it without
// a preflight, which the server refuses.
const Header = "Weft-Console"

// session is a person who has signed in. The API checks the key again at every request,
// so a session ends with its key.
type session struct {
	key, tenant string
	born, used  time.Time
}

// sessions has the keys by the digests of the cookies. Nothing of it is on disk.
type sessions struct {
	now  func() time.Time
	mu   sync.Mutex // guards byID
	byID map[[32]byte]*session
	of   map[string]int // sessions in byID by tenant
}

// cookieName has the prefix for which browsers demand Secure, where there is TLS.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-weft"
	}
	return "weft-console"
}

// own reports whether the console of this server sent the request. A browser sends
// Sec-Fetch-Site only to trustworthy origins; elsewhere it sends the Origin of every
// request from another origin.
func own(r *http.Request) bool {
	if v := r.Header.Values(Header); len(v) != 1 || v[0] != "1" {
		return false
	}
	if site := r.Header.Values("Sec-Fetch-Site"); len(site) > 0 {
		return len(site) == 1 && site[0] == "same-origin"
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	origin := r.Header.Values("Origin")
	return len(origin) == 0 || len(origin) == 1 && strings.EqualFold(origin[0], scheme+r.Host)
}

// digest returns the digest of the request's cookie; false if there is none, or several.
func digest(r *http.Request) ([32]byte, bool) {
	given := r.CookiesNamed(cookieName(r))
	if len(given) != 1 || given[0].Value == "" {
		return [32]byte{}, false
	}
	return sha256.Sum256([]byte(given[0].Value)), true
}

// signed returns the request with the key of its session. A request that has a key, or
// that the console did not send, is returned as it is.
func (s *sessions) signed(r *http.Request) *http.Request {
	id, ok := digest(r)
	if !ok || r.Header.Get("Authorization") != "" || !own(r) {
		return r
	}
	key, ok := s.find(id)
	if !ok {
		return r
	}
	return withKey(r, key)
}

func withKey(r *http.Request, key string) *http.Request {
	out := r.WithContext(r.Context())
	out.Header = r.Header.Clone()
	out.Header.Set("Authorization", "Bearer "+key)
	return out
}

// find returns the key of a session that has not ended, and counts the use.
func (s *sessions) find(id [32]byte) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byID[id]
	if found == nil {
		return "", false
	}
	now := s.now()
	if found.ended(now) {
		s.remove(id)
		return "", false
	}
	found.used = now
	return found.key, true
}

func (x *session) ended(now time.Time) bool {
	return now.Sub(x.born) >= MaxAge || now.Sub(x.used) >= MaxIdle
}

// begin makes a session, and returns the cookie's value.
func (s *sessions) begin(key, tenant string) string {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	value := base64.RawURLEncoding.EncodeToString(random)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.of[tenant] >= MaxSessions {
		s.makeRoom(tenant, now)
	}
	s.byID[sha256.Sum256([]byte(value))] = &session{key: key, tenant: tenant, born: now, used: now}
	s.of[tenant]++
	return value
}

// makeRoom removes the sessions that have ended, or else the session of the tenant that was
// unused for longest. Sign-ins of one tenant end no session of another.
func (s *sessions) makeRoom(tenant string, now time.Time) {
	var oldest [32]byte
	var used time.Time
	for id, x := range s.byID {
		if x.ended(now) {
			s.remove(id)
		} else if x.tenant == tenant && (used.IsZero() || x.used.Before(used)) {
			oldest, used = id, x.used
		}
	}
	if s.of[tenant] >= MaxSessions {
		s.remove(oldest)
	}
}

// remove forgets a session, if there is one.
func (s *sessions) remove(id [32]byte) {
	x := s.byID[id]
	if x == nil {
		return
	}
	delete(s.byID, id)
	if s.of[x.tenant]--; s.of[x.tenant] == 0 {
		delete(s.of, x.tenant)
	}
}

func (s *sessions) end(id [32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(id)
}

// session answers GET (is a key needed?), POST (sign in) and DELETE (sign out).
func (c *Console) session(w http.ResponseWriter, r *http.Request, api http.Handler) {
	setHeaders(w, "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodDelete {
		w.Header().Set("Allow", "DELETE, GET, POST")
		refuse(w, http.StatusMethodNotAllowed, "Use GET, POST or DELETE")
		return
	}
	if !own(r) {
		refuse(w, http.StatusForbidden, "Only the console of this server may use its sessions: the header "+Header+": 1 is missing, or the request comes from another site")
		return
	}
	switch r.Method {
	case http.MethodGet:
		c.ask(w, r, api)
	case http.MethodPost:
		c.signIn(w, r, api)
	case http.MethodDelete:
		if id, ok := digest(r); ok {
			c.sessions.end(id)
		}
		http.SetCookie(w, cookie(r, "", -1))
		w.WriteHeader(http.StatusNoContent)
	}
}

// ask says whether requests need a key and have one. It answers 200 to people who have
// not signed in, because browsers log every other status as an error.
func (c *Console) ask(w http.ResponseWriter, r *http.Request, api http.Handler) {
	signed := c.sessions.signed(r)
	status, answer := probe(api, signed)
	says := "keyless"
	switch {
	case status == http.StatusUnauthorized:
		says = "signed-out"
	case status != http.StatusOK:
		pass(w, status, answer)
		return
	case signed.Header.Get("Authorization") != "":
		says = "signed-in"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"session": says}) // the client may be gone
}

func (c *Console) signIn(w http.ResponseWriter, r *http.Request, api http.Handler) {
	key, err := readKey(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, http.StatusBadRequest, `The body must be {"key": "..."} with the key: `+err.Error())
		return
	}
	status, answer := probe(api, withKey(r, key))
	if status != http.StatusOK {
		pass(w, status, answer)
		return
	}
	var who struct {
		Tenant string `json:"tenant"`
		Server bool   `json:"server_admin"`
	}
	if err := json.Unmarshal(answer, &who); err != nil {
		refuse(w, http.StatusInternalServerError, "The server does not say whose key it is: "+err.Error())
		return
	}
	if who.Server {
		who.Tenant = "" // sessions of the server's own key are apart from those of any tenant
	}
	if old, ok := digest(r); ok {
		c.sessions.end(old)
	}
	http.SetCookie(w, cookie(r, c.sessions.begin(key, who.Tenant), int(MaxAge/time.Second)))
	w.WriteHeader(http.StatusNoContent)
}

var errNoKey = errors.New("it has no key")

// readKey reads the key of a sign-in. A key has no spaces and no control characters, so
// that it cannot leave its header.
func readKey(body io.Reader) (string, error) {
	var given struct {
		Key string `json:"key"`
	}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&given); err != nil {
		return "", err
	}
	key := strings.TrimSpace(given.Key)
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errNoKey
	}
	return key, nil
}

func cookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode}
}

// probed is the path that says whether a key is right, and whose it is: every role may read it.
const probed = "/whoami"

// probe asks the API as the client would, so that wrong keys count against its address.
func probe(api http.Handler, r *http.Request) (int, []byte) {
	ask := r.WithContext(r.Context())
	ask.Method, ask.URL, ask.RequestURI = http.MethodGet, &url.URL{Path: probed}, probed
	ask.Body, ask.ContentLength = http.NoBody, 0
	ask.Header = r.Header.Clone()
	for _, name := range []string{"Accept", "Accept-Encoding", "Content-Type", "If-None-Match", "Weft-Tenant"} {
		ask.Header.Del(name)
	}
	out := &recorder{header: http.Header{}, status: http.StatusOK}
	api.ServeHTTP(out, ask)
	return out.status, out.body.Bytes()
}

// recorder keeps the beginning of an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }
func (r *recorder) Write(b []byte) (int, error) {
	if rest := maxBody - r.body.Len(); rest > 0 {
		r.body.Write(b[:min(len(b), rest)])
	}
	return len(b), nil
}

// pass gives an answer of the API to the client.
func pass(w http.ResponseWriter, status int, answer []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(answer) // the client may be gone
}

func refuse(w http.ResponseWriter, status int, detail string) {
	answer, _ := json.Marshal(map[string]string{"detail": detail}) // it always can be
	pass(w, status, answer)
}
