package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/turns"
)

// pluginName matches the valid names of plugins.
var pluginName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// wasmTypes are the content types of an upload: none, the correct types, and the type
// that curl sends with any body.
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
	dry, err := flagOf(c.QueryParams(), "dry_run", false)
	if err != nil {
		return err
	}
	if dry && check {
		return invalid("check=true needs a version that is stored: leave out check or dry_run")
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
	if dry {
		return s.tryPlugin(ctx, c, name, wasm)
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
		return answerPlugin(c, status, &info, nil)
	}
	checks, err := s.checked(c, &info)
	if err != nil {
		return err
	}
	return answerPlugin(c, status, &info, &checks)
}

// tryPlugin answers what an upload would be, and how it differs from the newest version.
func (s *Server) tryPlugin(ctx context.Context, c echo.Context, name string, wasm []byte) error {
	newest, err := s.cfg.Plugins.Plugin(ctx, tenantOf(c), name)
	known := err == nil
	if !known && host.CodeOf(err) != host.CodeNotFound {
		return err
	}
	info, _, err := s.storePlugin(behalf.DryRun(ctx), c, name, wasm)
	if err != nil {
		return err
	}
	details := apiwire.PluginDetails{DryRun: true, Unchanged: known && newest.SHA256 == info.SHA256}
	if known {
		changes := changesOf(&newest, &info)
		details.Changes = &changes
	}
	apiwire.Fill(&details, &info)
	return answer(c, http.StatusOK, &details)
}

// storePlugin stores a version, and reports its progress to the client.
func (s *Server) storePlugin(ctx context.Context, c echo.Context, name string, wasm []byte) (host.PluginInfo, bool, error) {
	turn := &turns.Turn{}
	defer tellProgress(c, turn)()
	return s.cfg.Plugins.Put(turns.With(ctx, turn), tenantOf(c), name, wasm)
}

// asText refuses a module that curl -d has sent. A module begins with a zero byte. curl -d
// leaves zero bytes out, and some versions leave out the rest of their line too.
func asText(header http.Header, body []byte) error {
	if mediaType(header.Get("Content-Type")) == "application/x-www-form-urlencoded" && !bytes.HasPrefix(body, []byte("\x00asm")) {
		return invalid("The body is not a binary module: curl -d leaves bytes out; use curl --data-binary @FILE.wasm")
	}
	return nil
}

// withManifest returns a module with the manifest of its upload, if the upload has one.
func withManifest(header http.Header, wasm []byte) ([]byte, error) {
	text := strings.TrimSpace(header.Get(apiwire.HeaderManifest))
	if text == "" {
		return wasm, nil
	}
	manifest := []byte(text)
	if !strings.HasPrefix(text, "{") {
		var err error
		if manifest, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, invalid("The header %s is neither a JSON object nor base64 of one: %v", apiwire.HeaderManifest, err)
		}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, manifest); err != nil {
		return nil, invalid("The header %s is not JSON: %v", apiwire.HeaderManifest, err)
	}
	return abi.WithManifest(wasm, compact.Bytes()), nil
}

// getPlugin answers the newest version of a plugin.
func (s *Server) getPlugin(c echo.Context) error {
	info, err := s.cfg.Plugins.Plugin(c.Request().Context(), tenantOf(c), param(c, "name"))
	if err != nil {
		return orNotFound(err, textPluginNotFound)
	}
	return answerPlugin(c, http.StatusOK, &info, nil)
}

// listPlugins answers the newest version of each plugin.
func (s *Server) listPlugins(c echo.Context) error {
	list, err := s.cfg.Plugins.List(c.Request().Context(), tenantOf(c))
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, &apiwire.Plugins{Plugins: apiwire.FillAll[apiwire.Plugin](list)})
}

// listVersions answers all versions of a plugin.
func (s *Server) listVersions(c echo.Context) error {
	list, err := s.cfg.Plugins.Versions(c.Request().Context(), tenantOf(c), param(c, "name"))
	if err != nil {
		return orNotFound(err, textPluginNotFound)
	}
	return answer(c, http.StatusOK, &apiwire.Versions{Versions: apiwire.FillAll[apiwire.Plugin](list)})
}

// getModule answers the bytes of a version of a plugin.
func (s *Server) getModule(c echo.Context) error {
	digest := strings.ToLower(c.QueryParam("sha256"))
	if digest != "" && !wholeVersion.MatchString(digest) {
		return invalid("Invalid sha256: '%s'. It must be the digest of a version, in 64 hexadecimal digits", clip(digest))
	}
	name := param(c, "name")
	wasm, version, err := s.cfg.Plugins.Module(c.Request().Context(), tenantOf(c), name, digest)
	if err != nil {
		return orNotFound(err, textPluginNotFound)
	}
	c.Response().Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=\"%s-%d.wasm\"", name, version))
	return c.Blob(http.StatusOK, "application/wasm", wasm)
}

// deletePlugin removes a plugin, or one of its versions.
func (s *Server) deletePlugin(c echo.Context) error {
	if q := c.QueryParams(); q.Has("version") { // an empty version must not delete all versions
		return s.deleteVersion(c, q.Get("version"))
	}
	err := s.cfg.Plugins.Delete(c.Request().Context(), tenantOf(c), param(c, "name"))
	return answerGone(c, orNotFound(err, textPluginNotFound))
}

// deleteVersion removes a version of a plugin.
func (s *Server) deleteVersion(c echo.Context, text string) error {
	version, err := strconv.Atoi(text)
	if err != nil || version < 1 {
		return invalid("Invalid version: '%s'. It must be the number of a version of the plugin, from 1", clip(text))
	}
	return answerGone(c, s.cfg.Plugins.DeleteVersion(c.Request().Context(), tenantOf(c), param(c, "name"), version))
}

// answerPlugin answers a version of a plugin, with checks unless they are nil.
func answerPlugin(c echo.Context, status int, info *host.PluginInfo, checks *[]apiwire.Migration) error {
	details := apiwire.PluginDetails{Check: checks}
	apiwire.Fill(&details, info)
	return answer(c, status, &details)
}
