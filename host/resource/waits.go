package resource

import (
	"io"
	"net/http"

	"github.com/weftrun/weft/host"
)

// roundTrip makes a request. It reports to the call each wait for the network, including
// waits for the body of the answer.
func roundTrip(t *http.Transport, call *host.ResourceCall, req *http.Request) (*http.Response, error) {
	if call.Waits == nil {
		return t.RoundTrip(req)
	}
	back := call.Waits()
	res, err := t.RoundTrip(req)
	back()
	if err == nil {
		res.Body = &waitingBody{res.Body, call.Waits}
	}
	return res, err
}

// waitingBody is the body of an answer.
type waitingBody struct {
	io.ReadCloser
	waits func() (back func())
}

// Read implements io.Reader.
func (b *waitingBody) Read(p []byte) (int, error) {
	back := b.waits()
	n, err := b.ReadCloser.Read(p)
	back()
	return n, err
}
