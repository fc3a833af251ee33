package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host/httpapi/openapi"
)

// descriptionRoutes joins the paths of the description to handlers. The description is
// made when it is first asked for: until then not all routes are there.
func (s *Server) descriptionRoutes(read func(path string, h echo.HandlerFunc)) {
	read(openapi.PathDescription, func(c echo.Context) error {
		return send(c, http.StatusOK, echo.MIMEApplicationJSON, s.pages().JSON)
	})
	// A browser that is sent to the server's address finds something to read.
	read("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, openapi.PathDocs) })
	read(openapi.PathDocs, func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		return send(c, http.StatusOK, echo.MIMETextHTMLCharsetUTF8, s.pages().HTML)
	})
}
