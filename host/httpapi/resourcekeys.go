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
)

// A page of keys has at most so many, and ends after so many bytes of keys and values.
const (
	defaultKeys = 100
	keysBytes   = 4 << 20
)

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
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) { return appendKeyPage(dst, &page) })
}

// parseKeyQuery reads which keys are wanted. A cursor is the key behind which to go on.
func parseKeyQuery(v url.Values) (host.KVQuery, error) {
	q := host.KVQuery{Prefix: v.Get("prefix"), Limit: defaultKeys, Bytes: keysBytes, Values: strings.EqualFold(v.Get("values"), "true")}
	if !utf8.ValidString(q.Prefix) {
		return q, invalid("Invalid prefix: it is not UTF-8")
	}
	if text := v.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return q, invalid("Invalid limit: '%s'. It is a number from 1 to %d", clip(text), maxPage)
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

func appendKeyPage(dst []byte, page *host.KVPage) (_ []byte, err error) {
	dst = append(dst, `{"keys":[`...)
	for i := range page.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		item := &page.Items[i]
		dst = appendString(append(dst, `{"key":`...), item.Key)
		dst = strconv.AppendUint(append(dst, `,"version":`...), item.Version, 10)
		if item.Value != nil {
			if dst, err = appendRaw(append(dst, `,"value":`...), item.Value); err != nil {
				return nil, err
			}
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `],"next_cursor":`...)
	if page.More && len(page.Items) > 0 {
		last := page.Items[len(page.Items)-1].Key
		dst = appendString(dst, base64.RawURLEncoding.EncodeToString([]byte(last)))
	} else {
		dst = append(dst, "null"...)
	}
	return append(appendFigures(dst, figure{"total_keys", uint64(page.Totals.Keys)}, figure{"total_bytes", uint64(page.Totals.Bytes)}), '}'), nil
}
