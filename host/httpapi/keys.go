package httpapi

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// createKey creates a key. No other answer contains the key itself.
func (s *Server) createKey(c echo.Context) error {
	body, err := s.readValue(c)
	if err != nil {
		return err
	}
	req, err := parseKey(body)
	if err != nil {
		return err
	}
	return managed(s, c, http.StatusCreated, func(ctx context.Context, a host.Access, by *host.Grant) (apiwire.NewKey, error) {
		k, secret, err := a.CreateKey(ctx, by, req)
		return showSecret(c, &k, secret), orNotFound(err, textTenantNotFound)
	})
}

// whoAmI answers who the request is, so that a client knows what it may offer.
func (s *Server) whoAmI(c echo.Context) error {
	grant := grantOf(c)
	me := host.Identity{
		Keyless: s.keyless(), Server: s.may(grant, roleServer), Tenant: grant.Tenant, Role: grant.Role,
		Version: s.cfg.Version, Started: s.started.UnixNano(),
	}
	if grant.KeyID != "" {
		k, err := s.cfg.Access.Key(c.Request().Context(), grant, grant.KeyID)
		if err != nil {
			return err
		}
		me.Key = &k
	}
	var out apiwire.Identity
	apiwire.Fill(&out, &me)
	return answer(c, http.StatusOK, &out)
}

func parseKey(body value) (req host.KeyRequest, err error) {
	var key apiwire.KeyRequest
	if err := body.into(&key); err != nil {
		return req, err
	}
	req = host.KeyRequest{Tenant: key.Tenant, Role: key.Role, Name: key.Name}
	if key.Expires == "" {
		return req, nil
	}
	t, err := time.Parse(time.RFC3339, key.Expires)
	if err != nil || t.Unix() <= 0 || t.Unix() >= math.MaxInt64/int64(time.Second) {
		return req, invalid("Invalid expires_at: '%s'. It must be a time like 2027-11-21T02:47:31Z", clip(key.Expires))
	}
	req.Expires = t.UnixNano()
	return req, nil
}

// listKeys answers all keys that the request may see.
func (s *Server) listKeys(c echo.Context) error {
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (apiwire.Keys, error) {
		list, err := a.Keys(ctx, by)
		return apiwire.Keys{Keys: apiwire.FillAll[apiwire.Key](list)}, err
	})
}

// getKey answers the description of a key, without the key itself.
func (s *Server) getKey(c echo.Context) error {
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (out apiwire.Key, err error) {
		k, err := a.Key(ctx, by, param(c, "id"))
		apiwire.Fill(&out, &k)
		return out, orNotFound(err, textKeyNotFound)
	})
}

// revokeKey ends a key.
func (s *Server) revokeKey(c echo.Context) error {
	a, err := s.access()
	if err != nil {
		return err
	}
	return answerGone(c, orNotFound(a.RevokeKey(c.Request().Context(), grantOf(c), param(c, "id")), textKeyNotFound))
}

// rotateKey gives a key a new secret.
func (s *Server) rotateKey(c echo.Context) error {
	var body apiwire.Rotate
	if err := s.readInto(c, &body); err != nil {
		return err
	}
	var grace time.Duration
	if body.Grace != nil {
		grace = time.Duration(*body.Grace)
	}
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (apiwire.NewKey, error) {
		k, secret, err := a.RotateKey(ctx, by, param(c, "id"), grace)
		return showSecret(c, &k, secret), orNotFound(err, textKeyNotFound)
	})
}

// showSecret returns a key with its secret, and forbids caches to store the answer.
func showSecret(c echo.Context, k *host.KeyRecord, secret string) apiwire.NewKey {
	c.Response().Header().Set("Cache-Control", "no-store")
	out := apiwire.NewKey{Secret: secret}
	apiwire.Fill(&out, k)
	return out
}

// listAudit answers a page of the audit log, newest entry first.
func (s *Server) listAudit(c echo.Context) error {
	by := grantOf(c)
	before, limit, err := parseAudit(by, c.QueryParams())
	if err != nil {
		return err
	}
	return managed(s, c, http.StatusOK, func(ctx context.Context, a host.Access, by *host.Grant) (apiwire.Audit, error) {
		list, more, err := a.Audit(ctx, by, before, limit)
		out := apiwire.Audit{Entries: apiwire.FillAll[apiwire.Act](list)}
		if more && len(list) > 0 {
			out.NextCursor = apiwire.OrNull(numberCursor(auditHash(by), uint64(list[len(list)-1].ID)))
		}
		return out, err
	})
}

// parseAudit reads the position and the length of the page.
func parseAudit(by *host.Grant, v url.Values) (before int64, limit int, err error) {
	limit, err = limitOf(v, apiwire.MaxPage, apiwire.MaxPage)
	text := v.Get("cursor")
	if err != nil || text == "" {
		return 0, limit, err
	}
	listing, n, err := readNumberCursor(text)
	if before = int64(n); err == nil && (listing != auditHash(by) || before < 1) {
		err = invalid("The cursor belongs to another listing")
	}
	return before, limit, err
}

// auditHash identifies the part of the audit log that a grant may see.
func auditHash(by *host.Grant) string {
	q := host.RunQuery{Tenant: "audit of " + by.Tenant, Blocked: by.Server && !by.Named}
	return string(filterHash(&q))
}
