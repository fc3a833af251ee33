package wefttest

import (
	"errors"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// resource answers a call of a resource.
type resource func(method string, payload codec.Raw) (any, error)

// Resource lets a function stand for a granted resource. It gets the payload as a P;
// a [Failure] that it returns is the call's. For the kind "http", P is
// [weft.HTTPRequest] and the answer a [weft.HTTPResponse].
//
//	wefttest.NewSession(wefttest.Resource("crm", func(_ string, r weft.HTTPRequest) (any, error) {
//		return weft.HTTPResponse{Status: 200, Body: []byte("hello")}, nil
//	}))
func Resource[P any](name string, call func(method string, payload P) (any, error)) Option {
	return func(s *Session) {
		s.resources[name] = func(method string, raw codec.Raw) (any, error) {
			var payload P
			if err := codec.Unmarshal(raw, &payload); err != nil {
				return nil, &Failure{Code: "invalid_message", Message: "payload: " + err.Error()}
			}
			return call(method, payload)
		}
	}
}

// resource answers a call_resource.
func (c *calls) resource(d *cbor.Decoder) (uint32, []byte) {
	d.Array()
	name, method, payload := d.Text(), d.Text(), d.Raw()
	if d.Failed() {
		return 0, nil // told by the caller
	}
	if !c.run.session.manifest.wants(name) {
		return fail("failed_precondition", "the workflow does not ask for the resource "+name+": add a weft.Resource to its options")
	}
	call := c.run.session.root.resources[name]
	if call == nil {
		return fail("permission_denied", "the resource "+name+" is not granted: give the session one, wefttest.Resource(\""+name+"\", ...)")
	}
	v, err := call(method, payload)
	failure := (*Failure)(nil)
	switch {
	case errors.As(err, &failure):
		return refuse(failure)
	case err != nil:
		return fail("unavailable", err.Error())
	}
	return answer(v)
}
