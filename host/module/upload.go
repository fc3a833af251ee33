package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/extism"
)

// legalName is what plugins and workflows may be called.
var legalName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// Put implements [host.Plugins]. Nothing is stored before everything has been
// checked. The stages are: the module, its description, and what it declares;
// all problems of a stage come together, and end the upload.
func (s *Service) Put(ctx context.Context, tenant, name string, wasm []byte) (host.PluginInfo, bool, error) {
	if !legalName.MatchString(name) {
		return host.PluginInfo{}, false, host.Errorf(host.CodeInvalidArgument,
			"%.140q is not a name for a plugin: use 1 to 128 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit", name)
	}
	wasm = extism.Complete(wasm, name)
	limits := s.limits.Limits(tenant, name)
	if limit := limits.ModuleBytes; len(wasm) > limit {
		return host.PluginInfo{}, false, host.Errorf(host.CodeTooLarge, "the module has %d bytes, at most %d are allowed (limit module_bytes)", len(wasm), limit)
	}
	sum := sha256.Sum256(wasm)
	digest := hex.EncodeToString(sum[:])
	if newest, ok := s.newest(tenant, name); ok && newest.Digest == digest {
		info, err := s.info(ctx, newest)
		return info, false, err
	}
	if err := s.quota(ctx, tenant, len(wasm)); err != nil { // before it is compiled
		return host.PluginInfo{}, false, err
	}
	v, err := s.check(behalf.With(ctx, tenant), digest, wasm, limits)
	if err != nil {
		return host.PluginInfo{}, false, err
	}
	stored, created, err := s.keep(ctx, tenant, name, v, wasm)
	if err != nil {
		return host.PluginInfo{}, false, err
	}
	if behalf.IsDryRun(ctx) { // the store does not have the version
		info, err := s.inUse(ctx, stored, shown(stored, v))
		return info, created, err
	}
	info, err := s.info(ctx, stored)
	return info, created, err
}

// check runs an upload through all stages.
func (s *Service) check(ctx context.Context, digest string, wasm []byte, limits host.Limits) (*version, error) {
	imports, problems := s.sandbox.Inspect(ctx, wasm, limits)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := unchecked(problems); err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, invalid("the plugin", problems)
	}
	described, err := s.sandbox.Describe(ctx, digest, wasm, limits)
	if err != nil {
		var e *host.Error
		if errors.As(err, &e) && e.Code == host.CodeInvalidPlugin {
			return nil, invalid("the plugin", e.Problems)
		}
		return nil, err
	}
	v, problems := compile(described.Manifest)
	if len(problems) > 0 {
		return nil, invalid("the plugin", problems)
	}
	v.digest, v.rewritten, v.imageHash, v.size, v.imports = digest, described.Rewritten, described.ImageHash, len(wasm), imports
	return v, nil
}

// unchecked is the error of a module that could not be looked at, by no fault of its
// own, or nil: a full disk must not tell anybody that a plugin is wrong.
func unchecked(problems []host.Problem) error {
	if len(problems) != 1 {
		return nil
	}
	switch p := problems[0]; host.Code(p.Code) {
	case host.CodeUnavailable, host.CodeInternal:
		return &host.Error{Code: host.Code(p.Code), Message: p.Message}
	}
	return nil
}

// invalid is the error of what has problems.
func invalid(what string, problems []host.Problem) error {
	has := "a problem"
	if n := len(problems); n > 1 {
		has = counted(n, "problem")
	}
	e := host.Errorf(host.CodeInvalidPlugin, "%s has %s, nothing was changed: %s", what, has, problems[0].Message)
	if n := len(problems) - mostProblems; n > 0 {
		problems = append(slices.Clip(problems[:mostProblems]), host.Problem{Code: "more_problems", Message: "and " + counted(n, "problem") + " more: fix these first"})
	}
	e.Problems = problems
	return e
}

// mostProblems bounds the problems that are told at a time.
const mostProblems = 1000

// counted shows a number of things: 1 run, 2 runs.
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// keep stores a checked upload as the plugin's next version. In a dry run, it only
// returns the version that it would store.
func (s *Service) keep(ctx context.Context, tenant, name string, v *version, wasm []byte) (stored host.PluginVersion, created bool, err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	workflow := v.workflow()
	if err := s.free(tenant, name, workflow); err != nil {
		return stored, false, err
	}
	newest, known := s.newest(tenant, name)
	if known && newest.Digest == v.digest { // another upload was faster
		return newest, false, nil
	}
	if known && newest.Workflow != "" && newest.Workflow != workflow && !behalf.ReplacesWorkflow(ctx) {
		made := "makes none"
		if workflow != "" {
			made = "makes the workflow " + workflow
		}
		return stored, false, host.Errorf(host.CodeConflict, "plugin %s makes the workflow %s, and this version %s: upload it under another name, "+
			"or with replace_workflow=true (weft push --replace-workflow) if the old workflow is to go", name, newest.Workflow, made)
	}
	if err := s.quota(ctx, tenant, v.size); err != nil { // there may have been others since
		return stored, false, err
	}
	versions, remade, err := s.remake(ctx, tenant, &override{name, v})
	if err != nil {
		return stored, false, err
	}
	stored = host.PluginVersion{
		Tenant: tenant, Name: name, Workflow: workflow, Version: newest.Version + 1,
		Digest: v.digest, Size: v.size, Created: s.now().UnixNano(),
	}
	if behalf.IsDryRun(ctx) {
		return stored, true, nil
	}
	err = s.store.PutModule(ctx, host.ModuleRecord{
		Digest: v.digest, Rewritten: v.rewritten, ImageHash: v.imageHash, Manifest: v.manifest, Imports: v.imports, Bytes: wasm,
	})
	if err != nil {
		return host.PluginVersion{}, false, storeError("the module could not be stored", err)
	}
	if err := s.store.PutPlugin(ctx, stored, versions...); err != nil {
		return host.PluginVersion{}, false, storeError("the version could not be stored", err)
	}
	s.set(stored, remade...)
	s.log.InfoContext(ctx, "stored a plugin", "tenant", tenant, "plugin", name, "version", stored.Version, "workflow", workflow, "digest", v.digest,
		"remade", len(remade))
	return stored, true, nil
}

// free refuses a workflow that others make already; "" is none.
func (s *Service) free(tenant, plugin, workflow string) error {
	if workflow == "" {
		return nil
	}
	if other, ok := s.ofWorkflow(tenant, workflow); ok && other.Name != plugin {
		return host.Errorf(host.CodeConflict, "workflow %s belongs to plugin %s: upload under that name, or give the workflow another one", workflow, other.Name)
	}
	if c, ok := s.composition(tenant, workflow); ok && !c.record.uses(plugin) {
		return host.Errorf(host.CodeConflict, "workflow %s is composed of other plugins (%s): give the plugin's workflow another name, or delete the composition",
			workflow, strings.Join(c.record.names(), ", "))
	}
	return nil
}

func storeError(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return host.Errorf(host.CodeUnavailable, "%s: %w", what, err)
}

// info describes the newest version of a plugin, with the runs that hold any.
func (s *Service) info(ctx context.Context, v host.PluginVersion) (host.PluginInfo, error) {
	u, err := s.usage(ctx, v.Tenant)
	if err != nil {
		return host.PluginInfo{}, err
	}
	return s.used(ctx, v, u)
}

// inUse completes the description of a version by what uses its plugin.
func (s *Service) inUse(ctx context.Context, v host.PluginVersion, info host.PluginInfo) (host.PluginInfo, error) {
	u, err := s.usage(ctx, v.Tenant)
	if err != nil {
		return host.PluginInfo{}, err
	}
	return s.withUsage(ctx, v, info, u)
}

// used is info, with the usage of the tenant's versions.
func (s *Service) used(ctx context.Context, v host.PluginVersion, u *usage) (host.PluginInfo, error) {
	info, err := s.describe(ctx, v)
	if err != nil {
		return info, err
	}
	return s.withUsage(ctx, v, info, u)
}

// withUsage is inUse, with the usage of the tenant's versions.
func (s *Service) withUsage(ctx context.Context, v host.PluginVersion, info host.PluginInfo, u *usage) (host.PluginInfo, error) {
	for _, c := range s.compositionsOf(v.Tenant, v.Name) {
		info.ComposedIn = append(info.ComposedIn, c.record.Name)
	}
	if u.none() {
		return info, nil
	}
	versions, err := s.store.PluginVersions(ctx, v.Tenant, v.Name)
	if errors.Is(err, host.ErrNotFound) { // a dry run of the first version
		return info, nil
	}
	if err != nil {
		return info, storeError("the versions could not be read", err)
	}
	info.Runs = sum(u.ofPlugin(versions))
	return info, nil
}

// describe describes a version, without its runs.
func (s *Service) describe(ctx context.Context, v host.PluginVersion) (host.PluginInfo, error) {
	c, err := s.version(ctx, v.Digest)
	if err != nil {
		return host.PluginInfo{}, err
	}
	return shown(v, c), nil
}

// shown is the description of a version that has c as its module.
func shown(v host.PluginVersion, c *version) host.PluginInfo {
	return host.PluginInfo{
		Name: v.Name, Workflow: v.Workflow, Version: v.Version, SHA256: v.Digest, RewrittenSHA256: c.rewritten, Size: v.Size,
		Manifest: c.manifest, Imports: slices.Clone(c.imports), Created: time.Unix(0, v.Created).UTC(),
	}
}

// Plugin implements [host.Plugins].
func (s *Service) Plugin(ctx context.Context, tenant, name string) (host.PluginInfo, error) {
	v, ok := s.newest(tenant, name)
	if !ok {
		return host.PluginInfo{}, pluginNotFound()
	}
	return s.info(ctx, v)
}

// Module implements [host.Plugins].
func (s *Service) Module(ctx context.Context, tenant, name, digest string) ([]byte, int, error) {
	v, ok := s.newest(tenant, name)
	if !ok {
		return nil, 0, pluginNotFound()
	}
	if digest != "" && digest != v.Digest {
		stored, err := s.store.PluginVersions(ctx, tenant, name)
		if err != nil && !errors.Is(err, host.ErrNotFound) {
			return nil, 0, storeError("the versions could not be read", err)
		}
		i := slices.IndexFunc(stored, func(v host.PluginVersion) bool { return v.Digest == digest })
		if i < 0 {
			return nil, 0, host.Errorf(host.CodeNotFound, "Plugin %s has no version with this SHA-256: GET /plugins/%s/versions lists those that it has", name, name)
		}
		v = stored[i]
	}
	wasm, err := s.Wasm(ctx, v.Digest)
	return wasm, v.Version, err
}

func pluginNotFound() *host.Error {
	return host.Errorf(host.CodeNotFound, "Plugin not found")
}

// List implements [host.Plugins].
func (s *Service) List(ctx context.Context, tenant string) ([]host.PluginInfo, error) {
	u, err := s.usage(ctx, tenant)
	if err != nil {
		return nil, err
	}
	s.mu.RLock()
	var newest []host.PluginVersion
	if t := s.tenants[tenant]; t != nil {
		for _, v := range t.plugins {
			newest = append(newest, v)
		}
	}
	s.mu.RUnlock()
	infos := make([]host.PluginInfo, 0, len(newest))
	for _, v := range newest {
		info, err := s.used(ctx, v, u)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, byName)
	return infos, nil
}

// Versions implements [host.Plugins]. Runs from before records had versions show
// with the newest.
func (s *Service) Versions(ctx context.Context, tenant, name string) ([]host.PluginInfo, error) {
	stored, err := s.store.PluginVersions(ctx, tenant, name)
	if errors.Is(err, host.ErrNotFound) || err == nil && len(stored) == 0 {
		return nil, pluginNotFound()
	}
	if err != nil {
		return nil, storeError("the versions could not be read", err)
	}
	u, err := s.usage(ctx, tenant)
	if err != nil {
		return nil, err
	}
	infos := make([]host.PluginInfo, 0, len(stored))
	for _, v := range stored {
		info, err := s.describe(ctx, v)
		if err != nil {
			return nil, err
		}
		info.HeldBy = u.of(v)
		info.Runs = sum(info.HeldBy)
		infos = append(infos, info)
	}
	newest := &infos[len(infos)-1]
	for _, c := range s.compositionsOf(tenant, name) {
		newest.ComposedIn = append(newest.ComposedIn, c.record.Name)
	}
	newest.HeldBy = append(newest.HeldBy, u.unknown(stored)...)
	newest.Runs = sum(newest.HeldBy)
	return infos, nil
}
