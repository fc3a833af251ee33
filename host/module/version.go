package module

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// version is a stored module's manifest, compiled, or that of a composed
// workflow, which has no module of its own. It is immutable.
type version struct {
	digest    string
	rewritten string
	imageHash string
	size      int
	manifest  abi.Raw
	imports   []string
	graph     *engine.Graph
	events    eventTypes
	// These are set for a composed workflow.
	record  *record
	plugins []string
	steps   map[string]Step
	// info describes the workflow, all but its plugins and digest. It is made once, when
	// first asked for, as every start over HTTP asks; nobody may change it.
	info func() (host.WorkflowInfo, error)
}

// compile compiles a manifest, or lists everything that is wrong with it.
func compile(raw abi.Raw) (*version, []host.Problem) {
	canonical, err := abi.Canonical(raw, abi.MaxMessageDepth)
	if err != nil {
		return nil, []host.Problem{{Code: "invalid_manifest", Message: "weft_describe gave no manifest: " + err.Error()}}
	}
	m, err := abi.DecodeManifest(canonical)
	if err != nil {
		return nil, []host.Problem{{Code: "invalid_manifest", Message: "the manifest cannot be read: " + err.Error()}}
	}
	events, faults := compileEvents(&m)
	graph, problems := engine.Compile(&m)
	if problems = append(problems, faults...); len(problems) > 0 {
		return nil, problems
	}
	v := &version{manifest: canonical, graph: graph, events: events}
	v.info = sync.OnceValues(v.describe)
	return v, nil
}

// workflow is the workflow that the version makes by itself; "" for a part.
func (v *version) workflow() string {
	if v.declares().Part {
		return ""
	}
	return v.graph.Workflow()
}

// version gives a stored version of a module or a composed workflow, compiled.
func (s *Service) version(ctx context.Context, digest string) (*version, error) {
	if v := s.compiled.get(digest); v != nil {
		return v, nil
	}
	m, err := s.store.Module(ctx, digest)
	if errors.Is(err, host.ErrNotFound) {
		return s.composed(ctx, digest)
	}
	if err != nil {
		return nil, moduleError(digest, err)
	}
	v, problems := compile(m.Manifest)
	if len(problems) > 0 {
		return nil, host.Errorf(host.CodeInternal, "module %s was stored by a server that took it, this one does not: %s", digest, problems[0].Message)
	}
	v.digest, v.rewritten, v.imageHash = m.Digest, m.Rewritten, m.ImageHash
	v.size, v.imports = len(m.Bytes), m.Imports
	return s.compiled.put(v), nil
}

// maxCompiled is how many compiled versions are kept.
const maxCompiled = 1000

// cache keeps the compiled versions that were used last. All methods may be
// called from any goroutine.
type cache struct {
	mu       sync.Mutex // guards what follows
	byDigest map[string]*list.Element
	recent   list.List // of *version, the last used first
}

// get gives a version, nil if it is not there.
func (c *cache) get(digest string) *version {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byDigest[digest]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*version)
}

// put keeps a version, and gives the one that was there first.
func (c *cache) put(v *version) *version {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byDigest[v.digest]; e != nil {
		return e.Value.(*version)
	}
	if c.byDigest == nil {
		c.byDigest = map[string]*list.Element{}
	}
	c.byDigest[v.digest] = c.recent.PushFront(v)
	if c.recent.Len() > maxCompiled {
		last := c.recent.Remove(c.recent.Back()).(*version)
		delete(c.byDigest, last.digest)
	}
	return v
}
