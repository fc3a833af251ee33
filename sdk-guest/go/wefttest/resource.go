package wefttest

import (
	"errors"

	"github.com/weftrun/weft/abi"
	services "github.com/weftrun/weft/host/resource"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// resource answers a call of a resource.
type resource func(method string, payload abi.Raw) (any, error)

// Resource replaces a granted resource by a function. The function receives the payload
// as a P. A [Failure] that it returns becomes the call's failure; any other error has the
// code "unavailable". For the kind "http", P is [weft.HTTPRequest] and the answer a
// [weft.HTTPResponse]; a request with ExpectSuccess fails, as on a server, if the status
// is not 200 to 299. The next attempt of a step repeats a failed call, and does not
// repeat an answered call.
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
			v, err := call(method, payload)
			if err == nil {
				err = unexpected(payload, v)
			}
			return v, err
		}
	}
}

// unexpected is the error of an answer that is not a success, if the request expects one.
func unexpected(payload, answer any) error {
	request, ok := payload.(weft.HTTPRequest)
	response, is := answer.(weft.HTTPResponse)
	if !ok || !is || !request.ExpectSuccess || response.Status >= 200 && response.Status <= 299 {
		return nil
	}
	return services.StatusError(response.Status, response.Body)
}

// ask returns the answer in the engine's form.
func (call resource) ask(method string, payload abi.Raw) (abi.Raw, *abi.Error) {
	process.Unlock() // the function is the test's own, which may use this package
	v, err := call(method, payload)
	process.Lock()
	var value abi.Raw
	if err == nil {
		value, err = encodeValue(v)
	}
	failure, refused := (*Failure)(nil), (*abi.Error)(nil)
	switch {
	case err == nil:
		return value, nil
	case errors.As(err, &failure):
		return nil, guestError(failure)
	case errors.As(err, &refused):
		return nil, refused
	}
	return nil, &abi.Error{Code: "unavailable", Message: err.Error()}
}
