package module

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/flow"
)

// recordFormat is the version of record's encoding.
const recordFormat = 1

// record is all that a version of a composed workflow consists of. The SHA-256
// of its encoding is the version's digest, so a field may only be added as one
// that is left out where it says nothing.
type record struct {
	Format      int                `cbor:"1,keyasint"`
	Name        string             `cbor:"2,keyasint"`
	Plugins     []recordPlugin     `cbor:"3,keyasint"`
	Timeout     *time.Duration     `cbor:"4,keyasint,omitempty"`
	Description string             `cbor:"5,keyasint,omitempty"`
	Config      map[string]abi.Raw `cbor:"6,keyasint,omitempty"`
	// Flow is the digest of the module of a flow, "" where the steps of the plugins
	// are the workflow; flow is what is in it, nil while nobody has read it.
	Flow string `cbor:"7,keyasint,omitempty"`
	flow *flow.Document
}

// recordPlugin is a plugin's version within a record.
type recordPlugin struct {
	Name   string `cbor:"1,keyasint"`
	Digest string `cbor:"2,keyasint"`
}

func (r *record) settings() host.WorkflowSettings {
	return host.WorkflowSettings{Timeout: r.Timeout, Description: r.Description, Config: r.Config}
}

// names gives the plugins' names.
func (r *record) names() []string {
	names := make([]string, len(r.Plugins))
	for i := range r.Plugins {
		names[i] = r.Plugins[i].Name
	}
	return names
}

// uses reports whether the record has a plugin.
func (r *record) uses(plugin string) bool { return slices.Contains(r.names(), plugin) }

// seal encodes a record as the version of that number.
func (r *record) seal(tenant string, number int, now time.Time) (host.CompositionVersion, error) {
	b, err := abi.Marshal(r)
	if err != nil {
		return host.CompositionVersion{}, host.Errorf(host.CodeInternal, "workflow %s cannot be written: %w", r.Name, err)
	}
	sum := sha256.Sum256(b)
	v := host.CompositionVersion{
		Tenant: tenant, Name: r.Name, Version: number, Digest: hex.EncodeToString(sum[:]), Record: b, Created: now.UnixNano(),
	}
	for _, p := range r.Plugins {
		v.Modules = append(v.Modules, p.Digest)
	}
	if r.Flow != "" {
		v.Modules = append(v.Modules, r.Flow)
	}
	return v, nil
}

// composition is a stored version with its record.
type composition struct {
	record record
	number int
	digest string
}

// opened reads a stored version.
func opened(v *host.CompositionVersion) (composition, error) {
	c := composition{number: v.Version, digest: v.Digest}
	if err := abi.Unmarshal(v.Record, &c.record); err != nil {
		return composition{}, host.Errorf(host.CodeInternal, "the composition of workflow %s cannot be read: %w", v.Name, err)
	}
	if c.record.Format != recordFormat {
		return composition{}, host.Errorf(host.CodeInternal, "the composition of workflow %s has format %d, this server knows %d", v.Name, c.record.Format, recordFormat)
	}
	return c, nil
}

// Step says which module serves a step of a composed workflow.
type Step struct {
	Digest    string
	ImageHash string
	Config    abi.Raw // a map; nil: the step has no configuration
}

// compose compiles a workflow of several plugins, or lists everything that is
// wrong with it.
func compose(r *record, parts []part) (*version, []host.Problem) {
	if r.Flow != "" {
		return composeFlow(r, parts)
	}
	settings := r.settings()
	return merge(r.Name, parts, &settings).version(r, parts, nil, len(parts) < len(r.Plugins))
}

// version compiles what was merged of the parts. If some are missing, what they would
// do is not known: then there are the problems alone.
func (m *merger) version(r *record, parts []part, c *engine.Correlation, missing bool) (*version, []host.Problem) {
	problems := slices.Concat(m.problems, m.unconfigured(r))
	if missing {
		return nil, problems
	}
	events, faults := compileEvents(&m.out)
	graph, whole := engine.Correlated(&m.out, c)
	problems = append(append(problems, m.placed(whole)...), faults...)
	if len(problems) > 0 {
		return nil, problems
	}
	v := &version{graph: graph, events: events, record: r, plugins: r.names(), steps: map[string]Step{}}
	v.info = sync.OnceValues(v.describe)
	for _, p := range parts {
		for _, step := range p.declares().Steps {
			v.steps[step.Name] = Step{Digest: p.digest, ImageHash: p.imageHash, Config: r.Config[step.Name]}
		}
	}
	return v, nil
}

// unconfigured finds the configurations of steps that there are not.
func (m *merger) unconfigured(r *record) []host.Problem {
	var problems []host.Problem
	for _, step := range slices.Sorted(maps.Keys(r.Config)) {
		if _, ok := m.owners[step]; !ok {
			problems = append(problems, host.Problem{Code: "unknown_step", Step: clipPlain(step),
				Message: "the settings configure step " + clipPlain(step) + ", but no plugin has a step of that name: leave it out, or name one of " + some(m.owners)})
		}
	}
	return problems
}

// some lists some of the names.
func some(owners map[string]string) string {
	names := slices.Sorted(maps.Keys(owners))
	if len(names) > mostInvolved {
		names = append(names[:mostInvolved], "...")
	}
	return strings.Join(names, ", ")
}

// composed gives a stored version of a composed workflow, compiled.
func (s *Service) composed(ctx context.Context, digest string) (*version, error) {
	stored, err := s.store.Composition(ctx, digest)
	if err != nil {
		return nil, moduleError(digest, err)
	}
	c, err := opened(&stored)
	if err == nil {
		err = s.readFlow(ctx, &c.record)
	}
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, p := range c.record.Plugins {
		v, err := s.version(ctx, p.Digest)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{p.Name, v})
	}
	v, problems := compose(&c.record, parts)
	if len(problems) > 0 {
		return nil, host.Errorf(host.CodeInternal, "workflow %s was composed by a server that took it, this one does not: %s", c.record.Name, problems[0].Message)
	}
	v.digest = digest
	return s.compiled.put(v), nil
}

// Compose implements [host.Plugins]. Nothing is stored before everything has
// been checked.
func (s *Service) Compose(ctx context.Context, tenant, name string, c host.Composition) (host.WorkflowInfo, bool, error) {
	settings, err := checkSettings(name, &c.Settings)
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	var doc *flow.Document
	var faults []host.Problem
	if c.Flow != nil { // long perhaps, and so while others may change things
		if doc, faults, err = s.readPosted(ctx, tenant, c.Flow); err != nil {
			return host.WorkflowInfo{}, false, err
		}
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	r := &record{Format: recordFormat, Name: name, Timeout: settings.Timeout, Description: settings.Description, Config: settings.Config}
	var names []string
	if c.Flow != nil {
		names, err = s.plan(ctx, tenant, r, &c, doc, faults)
	} else {
		names, err = s.named(tenant, name, c.Plugins)
	}
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	v, problems, err := s.assemble(ctx, tenant, r, names, nil)
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	if len(problems) > 0 {
		return host.WorkflowInfo{}, false, invalid("the workflow", problems)
	}
	changed, err := s.storeComposition(ctx, tenant, v)
	if err != nil {
		return host.WorkflowInfo{}, false, err
	}
	info, err := s.Workflow(ctx, tenant, name)
	return info, changed, err
}

// storeComposition makes a version the newest of its workflow; changed is false
// if it is that already. s.changing is held.
func (s *Service) storeComposition(ctx context.Context, tenant string, v *version) (changed bool, err error) {
	newest, _ := s.composition(tenant, v.record.Name)
	stored, err := v.record.seal(tenant, newest.number+1, s.now())
	if err != nil {
		return false, err
	}
	if stored.Digest == newest.digest {
		return false, nil
	}
	if err := s.storeFlow(ctx, v.record); err != nil {
		return false, err
	}
	if err := s.store.PutComposition(ctx, stored); err != nil {
		return false, storeError("the workflow could not be stored", err)
	}
	v.digest = stored.Digest
	s.compiled.put(v)
	s.setCompositions(tenant, composition{*v.record, stored.Version, stored.Digest})
	s.log.InfoContext(ctx, "composed a workflow", "tenant", tenant, "workflow", stored.Name, "version", stored.Version,
		"plugins", v.record.names(), "digest", stored.Digest)
	return true, nil
}

// checkSettings refuses what no workflow can have. It gives the settings in the
// one form in which they are stored.
func checkSettings(name string, given *host.WorkflowSettings) (host.WorkflowSettings, error) {
	if !legalName.MatchString(name) {
		return *given, host.Errorf(host.CodeInvalidArgument,
			"%.140q is not a name for a workflow: use 1 to 128 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit", name)
	}
	out := host.WorkflowSettings{Timeout: given.Timeout, Description: given.Description}
	if d := given.Timeout; d != nil && *d < 0 {
		return out, host.Errorf(host.CodeInvalidArgument, "the timeout is negative: use 0 for none")
	}
	size := len(given.Description)
	for _, step := range slices.Sorted(maps.Keys(given.Config)) {
		raw, err := abi.Canonical(given.Config[step], abi.MaxValueDepth)
		if err != nil {
			return out, host.Errorf(host.CodeInvalidArgument, "the configuration of step %s cannot be read: %w", clipPlain(step), err)
		}
		if cbor.Major(raw[0]) != cbor.Map {
			return out, host.Errorf(host.CodeInvalidArgument, "the configuration of step %s must be an object", clipPlain(step))
		}
		if out.Config == nil {
			out.Config = map[string]abi.Raw{}
		}
		out.Config[step] = bytes.Clone(raw)
		size += len(step) + len(raw)
	}
	if size > maxSettingsBytes {
		return out, host.Errorf(host.CodeTooLarge, "the settings have %d bytes of configuration and description, at most %d are allowed", size, maxSettingsBytes)
	}
	return out, nil
}

// named gives the plugins that a workflow is to be composed of. s.changing is
// held.
func (s *Service) named(tenant, workflow string, plugins []string) ([]string, error) {
	own, ok := s.ofWorkflow(tenant, workflow)
	switch {
	case len(plugins) == 0 && !ok:
		return nil, host.Errorf(host.CodeInvalidArgument, "no plugin makes a workflow %s by itself: name the plugins for the composition", workflow)
	case len(plugins) == 0:
		return []string{own.Name}, nil
	case ok && !slices.Contains(plugins, own.Name):
		return nil, host.Errorf(host.CodeConflict, "plugin %s makes a workflow %s by itself: name it among the plugins, or choose another name for the workflow", own.Name, workflow)
	}
	return plugins, nil
}

// Bounds of a [host.Composition].
const (
	maxComposedPlugins = 32
	maxSettingsBytes   = 1 << 20 // of configuration and description
)

// override is a version of a plugin that is about to become its newest.
type override struct {
	plugin string
	*version
}

// assemble fills in a record's plugins with their newest versions, and compiles
// it. s.changing is held.
func (s *Service) assemble(ctx context.Context, tenant string, r *record, names []string, over *override) (*version, []host.Problem, error) {
	if n := len(names); n > maxComposedPlugins {
		return nil, []host.Problem{{Code: "limit_exceeded", Message: "the workflow names " + counted(n, "plugin") + ": it may name " +
			counted(maxComposedPlugins, "plugin") + " at most, so put steps of several into one"}}, nil
	}
	if err := s.readFlow(ctx, r); err != nil {
		return nil, nil, err
	}
	var parts []part
	var missing []host.Problem
	r.Plugins = nil
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			missing = append(missing, host.Problem{Code: "duplicate_plugin", Message: "plugin " + clipPlain(name) + " is named twice: name it once"})
			continue
		}
		p := part{name: name}
		if over != nil && over.plugin == name {
			p.version = over.version
		} else if newest, ok := s.newest(tenant, name); ok {
			v, err := s.version(ctx, newest.Digest)
			if err != nil {
				return nil, nil, err
			}
			p.version = v
		} else {
			r.Plugins = append(r.Plugins, recordPlugin{Name: name})
			missing = append(missing, host.Problem{Code: "unknown_plugin", Message: "there is no plugin " + clipPlain(name) + ": upload it first, or leave it out"})
			continue
		}
		r.Plugins = append(r.Plugins, recordPlugin{Name: name, Digest: p.digest})
		parts = append(parts, p)
	}
	v, problems := compose(r, parts)
	if problems = append(missing, problems...); len(problems) > 0 {
		return nil, problems, nil
	}
	return v, nil, nil
}

// remake makes the next versions of the composed workflows that have a plugin,
// with the version that is about to become its newest. All must go on working.
// s.changing is held.
func (s *Service) remake(ctx context.Context, tenant string, over *override) ([]host.CompositionVersion, []composition, error) {
	var stored []host.CompositionVersion
	var remade []composition
	var broken []string
	var problems []host.Problem
	for _, c := range s.compositionsOf(tenant, over.plugin) {
		r := c.record
		_, faults, err := s.assemble(ctx, tenant, &r, c.record.names(), over)
		if err != nil {
			return nil, nil, err
		}
		if len(faults) > 0 {
			broken = append(broken, r.Name)
			for _, p := range faults {
				p.Message = "in workflow " + r.Name + ": " + p.Message
				problems = append(problems, p)
			}
			continue
		}
		next, err := r.seal(tenant, c.number+1, s.now())
		if err != nil {
			return nil, nil, err
		}
		stored = append(stored, next)
		remade = append(remade, composition{r, next.Version, next.Digest})
	}
	if len(problems) > 0 {
		return nil, nil, invalid("plugin "+over.plugin+" would break what is composed of it, "+strings.Join(broken, ", ")+": that", problems)
	}
	return stored, remade, nil
}

// Decompose implements [host.Plugins].
func (s *Service) Decompose(ctx context.Context, tenant, name string) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	c, ok := s.composition(tenant, name)
	if !ok {
		if _, own := s.ofWorkflow(tenant, name); own {
			return host.Errorf(host.CodeNotFound, "Workflow %s is a plugin's own: nothing was composed", name)
		}
		return workflowNotFound()
	}
	if err := s.undecomposed(ctx, tenant, name); err != nil { // while it can still be begun
		return err
	}
	s.unsetComposition(tenant, name) // so that no run of it starts any more
	if err := s.deleteComposition(ctx, tenant, name); err != nil {
		s.setCompositions(tenant, c)
		return err
	}
	s.log.Info("deleted a composed workflow", "tenant", tenant, "workflow", name)
	return nil
}

func (s *Service) deleteComposition(ctx context.Context, tenant, name string) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	if err := s.undecomposed(ctx, tenant, name); err != nil {
		return err
	}
	if err := s.store.DeleteComposition(ctx, tenant, name); err != nil && !errors.Is(err, host.ErrNotFound) {
		return storeError("the workflow could not be deleted", err)
	}
	return nil
}

// undecomposed refuses to delete a composed workflow while runs hold any version
// of it.
func (s *Service) undecomposed(ctx context.Context, tenant, name string) error {
	u, err := s.usage(ctx, tenant)
	if err != nil {
		return err
	}
	return heldBy(u.records[name]+u.older[name], "workflow", name)
}

// maxShownText bounds the text of others in a message, in bytes.
const maxShownText = 60

func clipPlain(s string) string { return abi.Clip(s, maxShownText) }
