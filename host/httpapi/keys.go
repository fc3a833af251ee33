package httpapi

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// createKey makes a key; its answer is the only one that has it.
func (s *Server) createKey(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	req, err := parseKey(body)
	if err != nil {
		return err
	}
	return s.managed(c, http.StatusCreated, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		k, secret, err := a.CreateKey(c.Request().Context(), by, req)
		return s.appendSecret(c, dst, &k, secret), orNotFound(err, textTenantNotFound)
	})
}

func parseKey(body value) (req host.KeyRequest, err error) {
	fields, err := body.only("tenant", "role", "name", "expires_at")
	if err != nil {
		return req, err
	}
	if req.Tenant, err = fields["tenant"].optionalText(); err != nil {
		return req, err
	}
	if req.Name, err = fields["name"].optionalText(); err != nil {
		return req, err
	}
	role, err := fields["role"].optionalText()
	if err != nil {
		return req, err
	}
	req.Role = host.Role(role)
	text, err := fields["expires_at"].optionalText()
	if err != nil || text == "" {
		return req, err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Unix() <= 0 || t.Unix() >= math.MaxInt64/int64(time.Second) {
		return req, invalid("Invalid expires_at: '%s'. It is a time like 2027-11-21T02:47:31Z", clip(text))
	}
	req.Expires = t.UnixNano()
	return req, nil
}

// listKeys answers all keys that the request may see.
func (s *Server) listKeys(c echo.Context) error {
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		list, err := a.Keys(c.Request().Context(), by)
		return appendObjects(dst, "keys", list, func(dst []byte, k *host.KeyRecord) []byte { return appendKey(dst, k, "") }), err
	})
}

// getKey answers one, but not the key itself.
func (s *Server) getKey(c echo.Context) error {
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		k, err := a.Key(c.Request().Context(), by, param(c, "id"))
		return appendKey(dst, &k, ""), orNotFound(err, textKeyNotFound)
	})
}

// revokeKey ends a key.
func (s *Server) revokeKey(c echo.Context) error {
	a, err := s.access()
	if err != nil {
		return err
	}
	if err := a.RevokeKey(c.Request().Context(), grantOf(c), param(c, "id")); err != nil {
		return orNotFound(err, textKeyNotFound)
	}
	return c.NoContent(http.StatusNoContent)
}

// rotateKey gives a key another secret.
func (s *Server) rotateKey(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	fields, err := body.only("grace")
	if err != nil {
		return err
	}
	var grace time.Duration
	if g := fields["grace"]; g.raw != nil && !g.null() {
		if grace, err = g.seconds(); err != nil {
			return err
		}
	}
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		k, secret, err := a.RotateKey(c.Request().Context(), by, param(c, "id"), grace)
		return s.appendSecret(c, dst, &k, secret), orNotFound(err, textKeyNotFound)
	})
}

// appendSecret appends a key with its secret, which nothing on the way may keep.
func (s *Server) appendSecret(c echo.Context, dst []byte, k *host.KeyRecord, secret string) []byte {
	c.Response().Header().Set("Cache-Control", "no-store")
	return appendKey(dst, k, secret)
}

func appendKey(dst []byte, k *host.KeyRecord, secret string) []byte {
	dst = appendString(append(dst, `{"id":`...), k.ID)
	if secret != "" {
		dst = appendString(append(dst, `,"key":`...), secret)
	}
	dst = appendString(append(dst, `,"prefix":`...), k.Prefix)
	dst = appendString(append(dst, `,"tenant":`...), k.Tenant)
	dst = appendString(append(dst, `,"role":`...), string(k.Role))
	dst = appendString(append(dst, `,"name":`...), k.Name)
	for _, at := range []struct {
		name  string
		nanos int64
	}{{"created_at", k.Created}, {"expires_at", k.Expires}, {"last_used_at", k.LastUsed}, {"revoked_at", k.Revoked}} {
		dst = append(appendString(append(dst, ','), at.name), ':')
		if at.nanos == 0 {
			dst = append(dst, "null"...)
			continue
		}
		dst = appendStamp(dst, at.nanos)
	}
	if k.PreviousUntil != 0 {
		dst = appendString(append(dst, `,"previous_prefix":`...), k.PreviousPrefix)
		dst = appendStamp(append(dst, `,"previous_until":`...), k.PreviousUntil)
	}
	return append(dst, '}')
}

// listAudit answers a page of the audit log, the newest first.
func (s *Server) listAudit(c echo.Context) error {
	by := grantOf(c)
	before, limit, err := parseAudit(by, c.QueryParams())
	if err != nil {
		return err
	}
	return s.managed(c, http.StatusOK, func(a host.Access, by *host.Grant, dst []byte) ([]byte, error) {
		list, more, err := a.Audit(c.Request().Context(), by, before, limit)
		if err != nil {
			return dst, err
		}
		dst = appendObjects(dst, "entries", list, appendAudit)
		dst = append(dst[:len(dst)-1], `,"next_cursor":`...)
		if !more {
			return append(dst, "null}"...), nil
		}
		cursor := binary.BigEndian.AppendUint64(auditHash(by), uint64(list[len(list)-1].ID))
		return append(appendString(dst, base64.RawURLEncoding.EncodeToString(cursor)), '}'), nil
	})
}

// parseAudit reads which page is asked for.
func parseAudit(by *host.Grant, v url.Values) (before int64, limit int, err error) {
	limit = maxPage
	if text := v.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return 0, 0, invalid("Invalid limit: '%s'. It is a number from 1 to %d", clip(text), maxPage)
		}
	}
	text := v.Get("cursor")
	if text == "" {
		return 0, limit, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != cursorHash+8 {
		return 0, 0, invalid("Invalid cursor: '%s'", clip(text))
	}
	before = int64(binary.BigEndian.Uint64(b[cursorHash:]))
	if string(b[:cursorHash]) != string(auditHash(by)) || before < 1 {
		return 0, 0, invalid("The cursor belongs to another listing")
	}
	return before, limit, nil
}

// auditHash identifies the part of the log that a grant sees.
func auditHash(by *host.Grant) []byte {
	q := host.RunQuery{Tenant: "audit of " + by.Tenant, Blocked: by.Server && !by.Named}
	return filterHash(&q)
}

func appendAudit(dst []byte, e *host.AuditEntry) []byte {
	dst = strconv.AppendInt(append(dst, `{"id":`...), e.ID, 10)
	dst = appendStamp(append(dst, `,"time":`...), e.Time)
	for _, f := range []struct{ name, text string }{
		{"who", e.Who}, {"tenant", e.Tenant}, {"act", e.Act}, {"target", e.Target}, {"detail", e.Detail}, {"outcome", e.Outcome},
	} {
		dst = appendString(append(appendString(append(dst, ','), f.name), ':'), f.text)
	}
	return append(dst, '}')
}
