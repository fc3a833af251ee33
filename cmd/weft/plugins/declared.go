package plugins

import (
	"fmt"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
)

// declaration has the parts of a plugin's manifest that an operator should know.
type declaration struct {
	steps     []string
	resources []string // with their kinds
	waits     []string // events that steps wait for
	retries   []string // steps that are retried
	timeout   string   // of a run; "" for a plugin without a workflow
	limits    []string // timeouts and workers that steps set
}

// declared reads a plugin's manifest, as far as it is understood.
func declared(info *host.PluginInfo) declaration {
	var d declaration
	m, err := abi.DecodeManifest(info.Manifest)
	if err != nil {
		return d // the summary has fewer lines then
	}
	switch {
	case m.Timeout == nil && m.Part:
	case m.Timeout == nil:
		d.timeout = "the server's default, of work, without its waits"
	case *m.Timeout > 0:
		d.timeout = screen.Span(*m.Timeout) + ", with its waits"
	default:
		d.timeout = "none"
	}
	for i := range m.Steps {
		d.step(&m.Steps[i])
	}
	for _, r := range m.Resources {
		text := r.Name + " (" + r.Kind + ")"
		if r.Optional {
			text = r.Name + " (" + r.Kind + ", optional)"
		}
		d.resources = append(d.resources, text)
	}
	return d
}

func (d *declaration) step(s *abi.StepDecl) {
	d.steps = append(d.steps, s.Name)
	if len(s.Waits) > 0 {
		d.waits = append(d.waits, fmt.Sprintf("%s (step %s)", strings.Join(s.Waits, ", "), s.Name))
	}
	if s.Retry != nil {
		d.retries = append(d.retries, "step "+s.Name)
	}
	if s.Timeout > 0 {
		d.limits = append(d.limits, fmt.Sprintf("step %s has %s", s.Name, screen.Span(s.Timeout)))
	}
	if s.Workers > 1 {
		d.limits = append(d.limits, fmt.Sprintf("step %s has %d workers", s.Name, s.Workers))
	}
}
