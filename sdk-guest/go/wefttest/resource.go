package wefttest

import (
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// resource answers a call of a resource.
type resource func(method string, payload abi.Raw) (any, error)

// Resource lets a function stand for a granted resource. It gets the payload as a P;
// a [Failure] that it returns is the call's, any other error has the code
// "unavailable". For the kind "http", P is [weft.HTTPRequest] and the answer a
// [weft.HTTPResponse]. A call that failed is made again by the next attempt of its
// step, one that was answered is not.
//
//	wefttest.NewSession(wefttest.Resource("crm", func(_ string, r weft.HTTPRequest) (any, error) {
//		return weft.HTTPResponse{Status: 200, Body: []byte("hello")}, nil
//	}))
func Resource[P any](name string, call func(method string, payload P) (any, error)) Option {
	return func(s *Session) {
		s.world.resources[name] = func(method string, raw abi.Raw) (any, error) {
			var payload P
			if err := codec.Unmarshal(raw, &payload); err != nil {
				return nil, &Failure{Code: "invalid_message", Message: "payload: " + err.Error()}
			}
			return call(method, payload)
		}
	}
}

// ask gives the answer as the engine wants it.
func (call resource) ask(method string, payload abi.Raw) (abi.Raw, *abi.Error) {
	process.Unlock() // it is the test's own, which may use this package
	v, err := call(method, payload)
	process.Lock()
	var value abi.Raw
	if err == nil {
		value, err = encodeValue(v)
	}
	failure := (*Failure)(nil)
	switch {
	case err == nil:
		return value, nil
	case errors.As(err, &failure):
		return nil, guestError(failure)
	}
	return nil, &abi.Error{Code: "unavailable", Message: err.Error()}
}
