package httpapi

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// keysBytes is the size in bytes of keys and values after which a page of keys ends.
const keysBytes = 4 << 20

// listResourceKeys answers a page of what a resource keeps.
func (s *Server) listResourceKeys(c echo.Context) error {
	a, err := s.resources()
	if err != nil {
		return err
	}
	q, err := parseKeyQuery(c.QueryParams())
	if err != nil {
		return err
	}
	page, err := a.ResourceKeys(c.Request().Context(), tenantOf(c), param(c, "name"), q)
	if err != nil {
		return err
	}
	out := apiwire.ResourceKeys{Keys: make([]apiwire.ResourceKey, len(page.Items)), TotalKeys: page.Totals.Keys, TotalBytes: page.Totals.Bytes}
	for i := range page.Items {
		apiwire.Fill(&out.Keys[i], &page.Items[i])
	}
	if page.More && len(page.Items) > 0 {
		last := page.Items[len(page.Items)-1].Key
		out.NextCursor = apiwire.OrNull(base64.RawURLEncoding.EncodeToString([]byte(last)))
	}
	return answer(c, http.StatusOK, &out)
}

// parseKeyQuery reads which keys are wanted. A cursor is the key behind which to go on.
func parseKeyQuery(v url.Values) (host.KVQuery, error) {
	q := host.KVQuery{Prefix: v.Get("prefix"), Limit: apiwire.DefaultKeys, Bytes: keysBytes, Values: strings.EqualFold(v.Get("values"), "true")}
	if !utf8.ValidString(q.Prefix) {
		return q, invalid("Invalid prefix: it is not UTF-8")
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > apiwire.MaxPage {
			return q, invalid("Invalid limit: '%s'. It is a number from 1 to %d", clip(text), apiwire.MaxPage)
		}
		q.Limit = n
	}
	if text := v.Get("cursor"); text != "" {
		b, err := base64.RawURLEncoding.DecodeString(text)
		q.After = string(b)
		if err != nil || q.After == "" || !utf8.Valid(b) {
			return q, invalid("Invalid cursor: '%s'", clip(text))
		}
		if !strings.HasPrefix(q.After, q.Prefix) {
			return q, invalid("The cursor belongs to a listing with another prefix")
		}
	}
	return q, nil
}
