package handlers

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weftrun/weft/host"
)

// maxID bounds the ids that clients give, in bytes.
const maxID = 256

// CheckStart checks the ids of a start.
func CheckStart(req *host.StartRequest) error {
	if err := CheckID("handler_id", req.HandlerID); err != nil {
		return err
	}
	return CheckID("session", req.SessionID)
}

// CheckID checks an id that a client gives. The error calls the id by the name.
func CheckID(name, id string) error {
	if len(id) > maxID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return host.Errorf(host.CodeInvalidArgument, "%s must be at most %d bytes of text without control characters", name, maxID)
	}
	if id == "." || id == ".." {
		return host.Errorf(host.CodeInvalidArgument, "%s must not be %q: clients and proxies shorten paths with such a part", name, id)
	}
	return nil
}

// NewID draws a handler's or run's id: 12 letters and digits. The first four count quarters
// of a second and repeat after six weeks: runs that begin together have their rows together
// in the store's indexes, and one commit of many runs writes few pages. The rest is random,
// 47 bits.
func (h *Reservations) NewID() string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const quarter = int64(time.Second / 4)
	var raw [24]byte
	var id [12]byte
	quarters := uint64(h.cfg.Now() / quarter)
	for n := 3; n >= 0; n-- {
		id[n] = letters[quarters%62]
		quarters /= 62
	}
	for n := 4; n < len(id); {
		h.cfg.Entropy(raw[:])
		for _, b := range raw {
			// 248 is the largest multiple of 62 in a byte: no letter is favoured.
			if b < 248 && n < len(id) {
				id[n] = letters[b%62]
				n++
			}
		}
	}
	return string(id[:])
}
