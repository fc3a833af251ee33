// Package console serves the web console: its files, and the sessions of people who have
// signed in. Everything that the console shows comes from the public API.
//
// It does not know the API's routes, except one that it asks whether a key is right. It
// stands before the API: it answers the paths below /console/ and passes every other
// request on, with the key of the request's session.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// Path is the path of the console. All its files are below it.
const Path = "/console/"

// policy allows nothing but the console's own files and the API of the same origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// headers are part of every answer of the console.
var headers = map[string]string{
	"Content-Security-Policy":      policy,
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"Permissions-Policy":           "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}

//go:embed all:dist
var dist embed.FS

// file is a file of the console in memory, plain and compressed.
type file struct {
	kind, tag   string
	plain, gzip []byte
}

// Console has the files and the sessions. Its methods may be called from any goroutine.
type Console struct {
	files    map[string]file
	sessions sessions
}

// New reads the files. now is the clock of the sessions; nil: the system's clock.
func New(now func() time.Time) *Console {
	if now == nil {
		now = time.Now
	}
	c := &Console{files: map[string]file{}, sessions: sessions{now: now, byID: map[[32]byte]*session{}, of: map[string]int{}}}
	err := fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		plain, err := dist.ReadFile(name)
		c.files[strings.TrimPrefix(name, "dist/")] = pack(name, plain)
		return err
	})
	if err != nil {
		panic(err) // the files are in the binary
	}
	return c
}

// pack compresses a file and gives it a tag.
func pack(name string, plain []byte) file {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(plain)                                 // a buffer takes everything
	_ = z.Close()
	sum := sha256.Sum256(plain)
	return file{kind: typeOf(name), tag: `"` + hex.EncodeToString(sum[:16]) + `"`, plain: plain, gzip: b.Bytes()}
}

// typeOf returns a media type that does not depend on the tables of the machine.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// Around returns a handler that serves the console and passes other requests to the API.
// A browser that opens the root address is sent to the console.
func (c *Console) Around(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch at := r.URL.Path; {
		case at == Path+"session":
			c.session(w, r, api)
		case strings.HasPrefix(at, Path):
			c.file(w, r, strings.TrimPrefix(at, Path))
		case at == "/" && isPage(r), at+"/" == Path:
			setHeaders(w, "no-store")
			w.Header().Set("Vary", "Accept")
			http.Redirect(w, r, Path, http.StatusFound)
		default:
			api.ServeHTTP(w, c.sessions.signed(r))
		}
	})
}

// isPage reports whether a browser loads a page by this request.
func isPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "text/html" {
			return true
		}
	}
	return false
}

func setHeaders(w http.ResponseWriter, cache string) {
	h := w.Header()
	for name, value := range headers {
		h.Set(name, value)
	}
	h.Set("Cache-Control", cache)
}

// file answers with a file. The page reads every other path itself, so these are the
// page, too.
func (c *Console) file(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		setHeaders(w, "no-store")
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "The files of the console can only be read", http.StatusMethodNotAllowed)
		return
	}
	f, known := c.files[name]
	cache := "no-store"
	switch asset := strings.HasPrefix(name, "assets/"); {
	case asset && !known:
		setHeaders(w, cache)
		http.Error(w, "The console has no such file", http.StatusNotFound)
		return
	case asset: // its name has a digest of its content
		cache = "max-age=31536000, immutable"
	case !known:
		f = c.files["index.html"]
	}
	setHeaders(w, cache)
	f.send(w, r)
}

func (f *file) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = f.gzip
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone
	}
}

// takesGzip reports whether a client names gzip without forbidding it.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}
