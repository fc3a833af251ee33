package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/abuse"
)

// getSession answers the description of a session.
func (s *Server) getSession(c echo.Context) error {
	return s.readSession(c, http.StatusOK)
}

func (s *Server) readSession(c echo.Context, status int) error {
	info, err := s.cfg.Sessions.Session(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textSessionNotFound)
	}
	return answerSession(c, status, &info)
}

func answerSession(c echo.Context, status int, info *host.SessionInfo) error {
	var out apiwire.Session
	apiwire.Fill(&out, info)
	return answer(c, status, &out)
}

// listSessions answers a page of sessions, newest first.
func (s *Server) listSessions(c echo.Context) error {
	q, err := s.parseSessionQuery(tenantOf(c), c.QueryParams())
	if err != nil {
		return err
	}
	list, more, err := s.cfg.Sessions.ListSessions(c.Request().Context(), q)
	if err != nil {
		return err
	}
	page := apiwire.Sessions{Sessions: apiwire.FillAll[apiwire.Session](list)}
	if more && len(list) > 0 {
		page.NextCursor = apiwire.OrNull(s.seal(q.Tenant, list[len(list)-1].Order))
	}
	return answer(c, http.StatusOK, &page)
}

func (s *Server) parseSessionQuery(tenant string, v url.Values) (host.SessionQuery, error) {
	q := host.SessionQuery{Tenant: tenant}
	var err error
	if q.Limit, err = limitOf(v, apiwire.MaxPage, apiwire.MaxPage); err != nil {
		return q, err
	}
	if text := v.Get("cursor"); text != "" {
		var ok bool
		if q.Before, ok = s.unseal(tenant, text); !ok {
			return q, invalid("Invalid cursor: '%s'", clip(text))
		}
	}
	return q, nil
}

// putSession creates a session, or replaces its state.
func (s *Server) putSession(c echo.Context) error {
	body, once, err := s.readOnce(c)
	if err != nil {
		return err
	}
	var put apiwire.PutSession
	if err := body.into(&put); err != nil {
		return err
	}
	req := host.SessionEdit{Tenant: tenantOf(c), Session: param(c, "id"), State: abi.Raw(put.State), Make: true, Once: once}
	if err := placeOf(c).Grow(abuse.Keeping(req.State)); err != nil {
		return err
	}
	if err := matchOf(c, &req); err != nil {
		return err
	}
	_, created, err := s.cfg.Sessions.EditState(c.Request().Context(), req)
	switch {
	case err != nil:
		return orNotFound(err, textSessionNotFound)
	case created:
		c.Response().Header().Set("Location", "/sessions/"+url.PathEscape(req.Session))
		return s.readSession(c, http.StatusCreated)
	}
	return s.readSession(c, http.StatusOK)
}

// deleteSession deletes a session with all its data.
func (s *Server) deleteSession(c echo.Context) error {
	err := s.cfg.Sessions.DeleteSession(c.Request().Context(), tenantOf(c), param(c, "id"))
	return answerGone(c, orNotFound(err, textSessionNotFound))
}

// releaseSession takes a session out of quarantine, and answers its new description.
func (s *Server) releaseSession(c echo.Context) error {
	info, err := s.cfg.Sessions.ReleaseSession(c.Request().Context(), tenantOf(c), param(c, "id"))
	if err != nil {
		return orNotFound(err, textSessionNotFound)
	}
	return answerSession(c, http.StatusOK, &info)
}

// getState answers the bare value at a path of a session's state.
func (s *Server) getState(c echo.Context) error {
	path := c.QueryParam("path")
	v, err := s.cfg.Sessions.State(c.Request().Context(), tenantOf(c), param(c, "id"), path)
	if err != nil {
		return err
	}
	return s.answerState(c, v)
}

// getStateAt answers the bare value at a path of the state that a run's session had after
// an entry of its journal.
func (s *Server) getStateAt(c echo.Context) error {
	q := c.QueryParams()
	at, err := positionOf(q, "at")
	if err != nil {
		return err
	}
	if at == 0 {
		return invalid("'at' is missing: the seq of an entry of the run's journal")
	}
	v, err := s.cfg.Runs.StateAt(c.Request().Context(), tenantOf(c), param(c, "id"), at, q.Get("path"))
	if err != nil {
		return err
	}
	return s.answerState(c, v)
}

// answerState answers a value of a state, or that the client has it already.
func (s *Server) answerState(c echo.Context, v host.StateValue) error {
	known, err := tagsOf(c.Request().Header.Values("If-None-Match"))
	if err != nil {
		return err
	}
	mine := entityTag(c, v.Tag)
	h := c.Response().Header()
	h.Add("Vary", "Accept")
	h.Set("ETag", `"`+mine+`"`)
	for _, tag := range known {
		if tag == host.AnyTag || strings.TrimPrefix(tag, weakMark) == mine {
			return c.NoContent(http.StatusNotModified)
		}
	}
	return s.sendValue(c, v.Value)
}

// sendValue sends a value of a state, which may be larger than any message.
func (s *Server) sendValue(c echo.Context, raw abi.Raw) error {
	if prefersCBOR(c.Request()) {
		return send(c, http.StatusOK, apiwire.TypeCBOR, raw)
	}
	return withBuffer(
		func(dst []byte) ([]byte, error) {
			limits := abi.Limits{MaxBytes: len(raw), MaxDepth: abi.MaxValueDepth, MaxElements: 2 * len(raw), MaxText: len(raw)}
			return limits.AppendJSON(dst, raw)
		},
		func(b []byte) error { return send(c, http.StatusOK, echo.MIMEApplicationJSON, b) })
}

// patchState edits the value at a path of a session's state, and answers the new value.
func (s *Server) patchState(c echo.Context) error {
	req := host.SessionEdit{Tenant: tenantOf(c), Session: param(c, "id"), Path: c.QueryParam("path")}
	kind := mediaType(c.Request().Header.Get("Content-Type"))
	if !slices.Contains([]string{"", echo.MIMEApplicationJSON, apiwire.TypeMergePatch, apiwire.TypeEdits, apiwire.TypeCBOR}, kind) {
		c.Response().Header().Set("Accept-Patch", apiwire.TypeMergePatch+", "+apiwire.TypeEdits)
		return host.Errorf(host.CodeUnsupportedMediaType, "A state is patched with %s or %s, not %q", apiwire.TypeMergePatch, apiwire.TypeEdits, clip(kind))
	}
	body, err := readBody(c, s.cfg.MaxBody)
	if err != nil {
		return err
	}
	if req.Once, err = onceOf(c, body); err != nil {
		return err
	}
	if req.Once.Key != "" && req.Path != "" {
		req.Once.Hash += "." + hashOf([]byte(req.Path)) // the same body with another path is another request
	}
	v, err := parseBody(body, kind == apiwire.TypeCBOR, placeOf(c))
	if err != nil {
		return err
	}
	raw, err := v.canonical()
	if err == nil {
		err = placeOf(c).Grow(abuse.Keeping(raw))
	}
	switch {
	case err != nil:
		return err
	case kind == apiwire.TypeEdits:
		if req.Edits, err = abi.DecodeEdits(raw); err != nil {
			return host.Errorf(host.CodeInvalidArgument, "The body is not a list of edits, such as [[\"set\", \"user.name\", \"Ada\"]]: %w", err)
		}
	case !v.object():
		return invalid("A merge patch of a state is an object")
	default:
		req.Patch = raw
	}
	if err := matchOf(c, &req); err != nil {
		return err
	}
	after, _, err := s.cfg.Sessions.EditState(c.Request().Context(), req)
	if err != nil {
		return orNotFound(err, textSessionNotFound)
	}
	h := c.Response().Header()
	h.Add("Vary", "Accept")
	h.Set("ETag", `"`+entityTag(c, after.Tag)+`"`)
	return s.sendValue(c, after.Value)
}

// A state in CBOR has a different entity tag than in JSON, because a strong tag stands
// for the exact bytes. An edit accepts both tags.
const cborTag = "-cbor"

func entityTag(c echo.Context, tag string) string {
	if prefersCBOR(c.Request()) {
		return tag + cborTag
	}
	return tag
}

// weakMark is the prefix of a weak tag. An edit matches no weak tag.
const weakMark = "W/"

// matchOf reads the condition on the state that is edited.
func matchOf(c echo.Context, req *host.SessionEdit) error {
	tags, err := tagsOf(c.Request().Header.Values("If-Match"))
	if err != nil {
		return err
	}
	for _, tag := range tags {
		req.Match = append(req.Match, strings.TrimSuffix(tag, cborTag))
	}
	none, err := tagsOf(c.Request().Header.Values("If-None-Match"))
	if err != nil {
		return err
	}
	if len(none) > 0 && !slices.Equal(none, []string{host.AnyTag}) {
		return invalid("If-None-Match of an edit can be * only: the session must not exist")
	}
	req.New = len(none) > 0
	return nil
}

// maxTags bounds the tags of a header.
const maxTags = 32

// tagsOf reads the tags of If-Match or If-None-Match without their quotes. Weak tags keep
// their mark. It returns no tags if the request does not have the header.
func tagsOf(headers []string) ([]string, error) {
	var out []string
	for _, header := range headers {
		for rest := strings.TrimSpace(header); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
			if rest[0] == '*' && len(out) < maxTags {
				out, rest = append(out, host.AnyTag), rest[1:]
				continue
			}
			bare, weak := strings.CutPrefix(rest, weakMark)
			tag, after, ok := strings.Cut(strings.TrimPrefix(bare, `"`), `"`)
			if !strings.HasPrefix(bare, `"`) || !ok || len(out) == maxTags {
				return nil, invalid("An entity tag is not valid: send the value of ETag, quotes included, or *; at most %d tags", maxTags)
			}
			if rest = after; weak {
				tag = weakMark + tag
			}
			out = append(out, tag)
		}
	}
	if len(headers) > 0 && len(out) == 0 {
		return nil, invalid("An entity tag is missing")
	}
	return out, nil
}
