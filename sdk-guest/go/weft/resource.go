package weft

import (
	"strings"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Call calls a resource that the operator has granted, and decodes the answer to *answer;
// nil drops the answer. The workflow declares the resource by a [Resource]. The payload
// is any value that an event may hold. While the call runs, the plugin uses neither CPU
// nor memory.
//
//	var joke struct{ Text string }
//	err := ctx.Call("llm", "chat", map[string]any{"prompt": "a joke"}, &joke)
//
// The answer is recorded. When the step is retried, the same call (the same resource,
// method and payload, as the first, second, ... of its kind) returns the same answer
// without a further request to the outside. A retried step repeats a failed call that may
// be retried, under the same key, unless the operator has forbidden repetition.
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

// HTTP returns the resource with the given name, to make requests. The workflow declares
// it by weft.Resource{Name: name, Kind: "http"}.
func (inv *invocation) HTTP(name string) HTTP { return HTTP{inv, name} }

// HTTPRequest is a request. Set either URL or Path.
type HTTPRequest struct {
	Method  string            `weft:",omitempty"` // "": GET
	URL     string            `weft:"url,omitempty"`
	Path    string            `weft:",omitempty"` // relative to the resource's base_url
	Query   map[string]string `weft:",omitempty"`
	Headers map[string]string `weft:",omitempty"`
	Body    []byte            `weft:",omitempty"`
	// Timeout limits the whole request. It is at most the resource's timeout; 0 means the
	// resource's timeout.
	Timeout time.Duration `weft:",omitempty"`
	// ExpectSuccess makes an answer with a status outside 200 to 299 an error. The step's
	// retry policy may retry the error after the statuses 408, 425, 429, and 500 and
	// above.
	ExpectSuccess bool `weft:",omitempty"`
}

// HTTPResponse is an answer.
type HTTPResponse struct {
	Status  int
	Headers map[string][]string // names in lower case
	Body    []byte
}

// Header returns the first value of a header, or "".
func (r *HTTPResponse) Header(name string) string {
	if values := r.Headers[strings.ToLower(name)]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Do makes a request and returns the answer, whatever its status. The code of an error
// says why there is no answer: the operator does not allow the request
// ("permission_denied"), the service is not reachable ("unavailable"), it does not answer
// in time ("timeout"), or its answer is too large ("limit_exceeded").
func (h HTTP) Do(r HTTPRequest) (HTTPResponse, error) {
	var answer HTTPResponse
	err := h.inv.Call(h.name, "request", r, &answer)
	return answer, err
}

// Get makes a GET request for a URL, or for a path relative to the base_url of the
// resource.
func (h HTTP) Get(where string) (HTTPResponse, error) {
	if strings.HasPrefix(where, "https://") || strings.HasPrefix(where, "http://") {
		return h.Do(HTTPRequest{URL: where})
	}
	return h.Do(HTTPRequest{Path: where})
}
