package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/turns"
)

// pluginName is what a plugin may be called.
var pluginName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// wasmTypes are the content types of an upload: none, the right ones, and what
// curl says of any body.
var wasmTypes = []string{"", "application/wasm", "application/octet-stream", "application/x-www-form-urlencoded"}

// putPlugin uploads a version of a plugin.
func (s *Server) putPlugin(c echo.Context) error {
	name := param(c, "name")
	if !pluginName.MatchString(name) {
		return invalid("A plugin's name matches %s, and '%s' does not", pluginName, clip(name))
	}
	if kind := mediaType(c.Request().Header.Get("Content-Type")); !slices.Contains(wasmTypes, kind) {
		return host.Errorf(host.CodeUnsupportedMediaType, "A plugin is uploaded as application/wasm, not as '%s'", clip(kind))
	}
	check, err := flagOf(c.QueryParams(), "check", false)
	if err != nil {
		return err
	}
	replaces, err := flagOf(c.QueryParams(), "replace_workflow", false)
	if err != nil {
		return err
	}
	wasm, err := readBody(c, s.cfg.MaxPlugin)
	if err != nil {
		return err
	}
	if err := asText(c.Request().Header, wasm); err != nil {
		return err
	}
	if wasm, err = withManifest(c.Request().Header, wasm); err != nil {
		return err
	}
	ctx := c.Request().Context()
	if replaces {
		ctx = behalf.ReplacingWorkflow(ctx)
	}
	info, created, err := s.storePlugin(ctx, c, name, wasm)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	if !check {
		return s.answerPlugin(c, status, &info, nil)
	}
	checks, err := s.checked(c, &info)
	if err != nil {
		return err
	}
	return s.answerPlugin(c, status, &info, func(dst []byte) ([]byte, error) { return appendChecks(dst, tenantOf(c), checks) })
}

// storePlugin stores a version, and meanwhile tells the client how far that is.
func (s *Server) storePlugin(ctx context.Context, c echo.Context, name string, wasm []byte) (host.PluginInfo, bool, error) {
	turn := &turns.Turn{}
	defer tellProgress(c, turn)()
	return s.cfg.Plugins.Put(turns.With(ctx, turn), tenantOf(c), name, wasm)
}

// asText refuses a module that curl -d has sent: it leaves out line ends and zeros, the
// first of which begins a module.
func asText(header http.Header, body []byte) error {
	if mediaType(header.Get("Content-Type")) == "application/x-www-form-urlencoded" && bytes.HasPrefix(body, []byte("asm")) {
		return invalid("The body is not the module as it was: curl -d leaves bytes out; use curl --data-binary @FILE.wasm")
	}
	return nil
}

// headerManifest has the manifest of a module that does not describe itself, as a
// plugin of Extism's: JSON, or that in base64, which any text survives.
const headerManifest = "X-Weft-Manifest"

// withManifest gives a module with the manifest of its upload, if there is one.
func withManifest(header http.Header, wasm []byte) ([]byte, error) {
	text := strings.TrimSpace(header.Get(headerManifest))
	if text == "" {
		return wasm, nil
	}
	manifest := []byte(text)
	if !strings.HasPrefix(text, "{") {
		var err error
		if manifest, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, invalid("The header %s is neither a JSON object nor base64 of one: %v", headerManifest, err)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, manifest); err != nil {
		return nil, invalid("The header %s is not JSON: %v", headerManifest, err)
	}
	return abi.WithManifest(wasm, compact.Bytes()), nil
}

// getPlugin answers the newest version of a plugin.
func (s *Server) getPlugin(c echo.Context) error {
	info, err := s.cfg.Plugins.Plugin(c.Request().Context(), tenantOf(c), param(c, "name"))
	if err != nil {
		return orNotFound(err, textPluginNotFound)
	}
	return s.answerPlugin(c, http.StatusOK, &info, nil)
}

// listPlugins answers the newest version of each plugin.
func (s *Server) listPlugins(c echo.Context) error {
	list, err := s.cfg.Plugins.List(c.Request().Context(), tenantOf(c))
	if err != nil {
		return err
	}
	return s.answerPlugins(c, `{"plugins":[`, list)
}

// listVersions answers all versions of a plugin.
func (s *Server) listVersions(c echo.Context) error {
	list, err := s.cfg.Plugins.Versions(c.Request().Context(), tenantOf(c), param(c, "name"))
	if err != nil {
		return orNotFound(err, textPluginNotFound)
	}
	return s.answerPlugins(c, `{"versions":[`, list)
}

// deletePlugin removes a plugin, or one of its versions.
func (s *Server) deletePlugin(c echo.Context) error {
	if q := c.QueryParams(); q.Has("version") { // an empty one must not delete them all
		return s.deleteVersion(c, q.Get("version"))
	}
	if err := s.cfg.Plugins.Delete(c.Request().Context(), tenantOf(c), param(c, "name")); err != nil {
		return orNotFound(err, textPluginNotFound)
	}
	c.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// deleteVersion removes a version of a plugin.
func (s *Server) deleteVersion(c echo.Context, text string) error {
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return invalid("Invalid version: '%s'. It is the number of a version of the plugin, from 1 on", clip(text))
	}
	if err := s.cfg.Plugins.DeleteVersion(c.Request().Context(), tenantOf(c), param(c, "name"), version); err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// answerPlugin answers a version of a plugin; more appends further fields, if it is
// not nil.
func (s *Server) answerPlugin(c echo.Context, status int, info *host.PluginInfo, more func(dst []byte) ([]byte, error)) error {
	return s.answerJSON(c, status, func(dst []byte) ([]byte, error) {
		dst = appendPlugin(append(dst, '{'), info)
		dst = append(dst, `,"rewritten_sha256":`...)
		dst = appendString(dst, info.RewrittenSHA256)
		dst = append(dst, `,"manifest":`...)
		dst, err := appendRaw(dst, info.Manifest)
		dst = append(dst, `,"imports":`...)
		dst = appendStrings(dst, info.Imports)
		if err == nil && more != nil {
			dst, err = more(dst)
		}
		return append(dst, '}'), err
	})
}

func (s *Server) answerPlugins(c echo.Context, open string, list []host.PluginInfo) error {
	return s.answerJSON(c, http.StatusOK, func(dst []byte) ([]byte, error) {
		dst = append(dst, open...)
		for i := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendPlugin(append(dst, '{'), &list[i]), '}')
		}
		return append(dst, "]}"...), nil
	})
}

// appendPlugin appends the fields that listings show, without braces.
func appendPlugin(dst []byte, info *host.PluginInfo) []byte {
	dst = append(dst, `"name":`...)
	dst = appendString(dst, info.Name)
	dst = append(dst, `,"workflow":`...)
	dst = appendStringOrNull(dst, info.Workflow) // a part makes none
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, int64(info.Version), 10)
	dst = append(dst, `,"sha256":`...)
	dst = appendString(dst, info.SHA256)
	dst = append(dst, `,"size":`...)
	dst = strconv.AppendInt(dst, int64(info.Size), 10)
	dst = append(dst, `,"created_at":`...)
	dst = appendStamp(dst, info.Created.UnixNano())
	dst = append(dst, `,"runs":`...)
	dst = strconv.AppendInt(dst, int64(info.Runs), 10)
	for i, held := range info.HeldBy {
		if i == 0 {
			dst = append(dst, `,"held_by":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"workflow":`...)
		dst = appendString(dst, held.Workflow)
		dst = append(dst, `,"version":`...)
		dst = appendStringOrNull(dst, held.Version) // it is not known of runs that are old
		dst = append(dst, `,"runs":`...)
		dst = append(strconv.AppendInt(dst, int64(held.Runs), 10), '}')
	}
	if len(info.HeldBy) > 0 {
		dst = append(dst, ']')
	}
	dst = append(dst, `,"composed_in":`...)
	return appendStrings(dst, info.ComposedIn)
}
