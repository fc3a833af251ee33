package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// readOnce reads a request's body, an object, and the key under which the request
// counts once, if it has one.
func (s *Server) readOnce(c echo.Context) (value, host.Once, error) {
	body, err := readBody(c, s.cfg.MaxBody)
	if err != nil {
		return value{}, host.Once{}, err
	}
	once, err := onceOf(c, body)
	if err != nil {
		return value{}, once, err
	}
	v, err := readObject(c, body)
	return v, once, err
}

func onceOf(c echo.Context, body []byte) (host.Once, error) {
	keys := c.Request().Header.Values(apiwire.HeaderOnce)
	if len(keys) == 0 {
		return host.Once{}, nil
	}
	key := keys[0]
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(keys) > 1 || key == "" || len(key) > apiwire.MaxOnce || strings.ContainsFunc(key, unfit) {
		return host.Once{}, invalid("The header %s must be given once, with 1 to %d visible ASCII characters", apiwire.HeaderOnce, apiwire.MaxOnce)
	}
	return host.Once{Route: c.Request().Method + " " + c.Request().URL.EscapedPath(), Key: key, Hash: hashOf(body)}, nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
