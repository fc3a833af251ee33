package httpapi

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Texts of not-found errors, which clients of the compatible routes know.
const (
	textNotFound         = "Not Found"
	textMethodNotAllowed = "Method Not Allowed"
	textHandlerNotFound  = "Handler not found"
	textWorkflowNotFound = "Workflow not found"
	textPluginNotFound   = "Plugin not found"
	textTenantNotFound   = "Tenant not found"
	textKeyNotFound      = "Key not found"
	textSessionNotFound  = "Session not found"
)

// orNotFound replaces the text of a not-found error; other errors stay unchanged.
func orNotFound(err error, text string) error {
	if err != nil && host.CodeOf(err) == host.CodeNotFound {
		return &host.Error{Code: host.CodeNotFound, Message: text, Cause: err}
	}
	return err
}

// invalid returns a 400 for a request that is readable but not valid.
func invalid(format string, args ...any) *host.Error {
	return host.Errorf(host.CodeInvalidArgument, format, args...)
}

// clip limits the length of a client's text in a message.
func clip(s string) string { return abi.Clip(s, 100) }

// param returns a path parameter. The router matches escaped paths without unescaping
// them.
func param(c echo.Context, name string) string {
	p := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return p
	}
	if plain, err := url.PathUnescape(p); err == nil {
		return plain
	}
	return p
}

// isTrue reads a boolean of the query: "true" in any case is true, any other text is
// false, and a missing parameter has the value absent.
func isTrue(q url.Values, name string, absent bool) bool {
	if !q.Has(name) {
		return absent
	}
	return strings.EqualFold(q.Get(name), "true")
}

// flagOf reads a boolean of the query and refuses any other text; an empty or missing
// parameter has the value absent.
func flagOf(v url.Values, name string, absent bool) (bool, error) {
	text := v.Get(name)
	if text == "" {
		return absent, nil
	}
	set, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid("Invalid %s: '%s'. It must be true or false", name, clip(text))
	}
	return set, nil
}

// positionOf reads a position of a journal from the query; 0: it is not given.
func positionOf(v url.Values, name string) (uint64, error) {
	text := v.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, invalid("Invalid %s: '%s'. It must be the seq of an entry of a journal", name, clip(text))
	}
	return n, nil
}

// limitOf reads the length of a page, from 1 to most; def if it is not given.
func limitOf(v url.Values, most, def int) (int, error) {
	text := v.Get("limit")
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid("Invalid limit: '%s'. It must be a number from 1 to %d", clip(text), most)
	}
	return n, nil
}
