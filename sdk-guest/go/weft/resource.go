package weft

import (
	"strings"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Call calls a resource that the operator has granted, and reads what it answers to
// *answer; nil drops it. The workflow asks for the resource by a [Resource]. The
// payload is any value that an event may hold. Nothing of the plugin runs or is held
// in memory meanwhile.
//
//	var joke struct{ Text string }
//	err := ctx.Call("llm", "chat", map[string]any{"prompt": "a joke"}, &joke)
//
// The answer is kept: when the step is tried again, the same call (the same resource,
// method and payload, as the first, second, ... of its kind) gives the same answer,
// and the outside is not asked twice. A call that failed and may be tried again is
// made again then, under the same key, unless the operator has forbidden that.
func (inv *invocation) Call(resource, method string, payload, answer any) error {
	what := "call " + quote(resource)
	e := inv.begin(3)
	e.Text(resource)
	e.Text(method)
	if payload == nil {
		e.Null()
	} else {
		e.Value(payload)
	}
	if e.Err() != nil {
		return misuse(what + ": " + e.Err().Error())
	}
	status, response := boundary.CallResource(e.B)
	if err := callError(status, response, what, ""); err != nil || answer == nil {
		return err
	}
	if err := codec.Unmarshal(response, answer); err != nil {
		return misuse(what + ": " + err.Error())
	}
	return nil
}

// HTTP is a granted resource of the kind "http".
type HTTP struct {
	inv  *invocation
	name string
}

// HTTP gives the resource of that name, to make requests with. It is asked for by
// weft.Resource{Name: name, Kind: "http"}.
func (inv *invocation) HTTP(name string) HTTP { return HTTP{inv, name} }

// HTTPRequest is a request. Give either a URL or a Path.
type HTTPRequest struct {
	Method  string            `weft:",omitempty"` // "": GET
	URL     string            `weft:"url,omitempty"`
	Path    string            `weft:",omitempty"` // below the base_url of the resource
	Query   map[string]string `weft:",omitempty"`
	Headers map[string]string `weft:",omitempty"`
	Body    []byte            `weft:",omitempty"`
	// Timeout of the whole, at most that of the resource; 0: that of the resource.
	Timeout time.Duration `weft:",omitempty"`
	// ExpectSuccess makes an answer whose status is not 200 to 299 an error, which
	// the step's retry policy may have tried again if that may help: after 408,
	// 425, 429 and from 500 on.
	ExpectSuccess bool `weft:",omitempty"`
}

// HTTPResponse is an answer.
type HTTPResponse struct {
	Status  int
	Headers map[string][]string // names in lower case
	Body    []byte
}

// Header gives the first value of a header, "" if there is none.
func (r *HTTPResponse) Header(name string) string {
	if values := r.Headers[strings.ToLower(name)]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Do makes a request and gives the answer, whatever its status. The error says why
// there is none: the operator does not allow the request (the code
// "permission_denied"), the service is not there ("unavailable"), does not answer in
// time ("timeout"), answers too much ("limit_exceeded").
func (h HTTP) Do(r HTTPRequest) (HTTPResponse, error) {
	var answer HTTPResponse
	err := h.inv.Call(h.name, "request", r, &answer)
	return answer, err
}

// Get makes a GET request for a URL, or for a path below the base_url of the
// resource.
func (h HTTP) Get(where string) (HTTPResponse, error) {
	if strings.HasPrefix(where, "https://") || strings.HasPrefix(where, "http://") {
		return h.Do(HTTPRequest{URL: where})
	}
	return h.Do(HTTPRequest{Path: where})
}
