package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host/httpapi/openapi"
)

// descriptionRoutes joins the paths of the description to handlers. The description is
// made at the first request, because not all routes are registered before.
func (s *Server) descriptionRoutes(read func(path string, h echo.HandlerFunc)) {
	read(openapi.PathDescription, func(c echo.Context) error {
		return send(c, http.StatusOK, echo.MIMEApplicationJSON, s.pages().JSON)
	})
	// The server's root address shows the documentation in a browser.
	read("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, openapi.PathDocs) })
	read(openapi.PathDocs, func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return send(c, http.StatusOK, echo.MIMETextHTMLCharsetUTF8, s.pages().HTML)
	})
}
