package extism

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
)

// steps reads the steps, or makes the implied one.
func (r *reading) steps(m map[string]any) {
	list, ok := m["steps"].([]any)
	if _, there := m["steps"]; there && !ok {
		r.add(problemManifest, "", "steps must be a list")
		return
	}
	if len(list) == 0 {
		candidates := Candidates(r.functions)
		if len(candidates) != 1 {
			r.add(problemSteps, "", "%s", choose(candidates))
			return
		}
		list = []any{map[string]any{"export": candidates[0]}}
	}
	r.plugin.Steps = map[string]Step{}
	for i, v := range list {
		decl, ok := v.(map[string]any)
		if !ok {
			r.add(problemManifest, "", "step %d must be an object, such as {\"export\": \"NAME\"}", i+1)
			continue
		}
		r.step(decl)
	}
	m["steps"] = list
}

// choose says what a manifest lacks.
func choose(candidates []string) string {
	const most = 20
	if len(candidates) == 0 {
		return "the module exports no function without parameters and with at most one result, so no export can be a step"
	}
	shown := candidates[:min(len(candidates), most)]
	return "the module exports " + list(shown, len(candidates)-len(shown)) +
		": declare the steps in a manifest, as in {\"steps\": [{\"export\": \"" + clip(candidates[0]) + "\"}]} (weft push --manifest FILE)"
}

// list names exports.
func list(names []string, more int) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = clip(name)
	}
	text := strings.Join(shown, ", ")
	if more > 0 {
		text += " and more"
	}
	return text
}

// step reads one step. The module's own declaration remains in decl.
func (r *reading) step(decl map[string]any) {
	step, _ := decl["name"].(string)
	export := r.take(decl, step, "export", step)
	if _, there := decl["name"]; !there {
		decl["name"], step = export, export
	}
	if step == "" {
		r.add(problemManifest, "", "a step needs an export, or the name of an export")
		return
	}
	if _, twice := r.plugin.Steps[step]; twice {
		r.add(problemManifest, step, "two steps have this name")
	}
	r.export(step, export)
	s := Step{Export: export}
	var ok bool
	if text := r.take(decl, step, "input", string(FormAuto)); true {
		if s.Input, ok = inputForm(text); !ok {
			r.add(problemForm, step, "input cannot be %q: use %s", clip(text), inputForms)
		}
	}
	if text := r.take(decl, step, "output", string(FormAuto)); true {
		if s.Output, ok = outputForm(text); !ok {
			r.add(problemForm, step, "output cannot be %q: use %s", clip(text), outputForms)
		}
	}
	s.Into = r.take(decl, step, "into", "")
	if _, there := decl["accepts"]; !there {
		decl["accepts"] = []any{abi.TypeStart}
	}
	if _, there := decl["emits"]; !there {
		decl["emits"] = []any{abi.TypeStop}
	}
	if _, there := decl["atomic"]; !there && r.atomic {
		decl["atomic"] = true
	}
	r.types = append(r.types, typesOf(decl["accepts"])...)
	r.types = append(r.types, typesOf(decl["emits"])...)
	s.Emits = r.emitted(step, decl["emits"], s.Output)
	r.durations(decl, step, "timeout")
	r.retry(step, decl["retry"])
	r.plugin.Steps[step] = s
}

// retry allows the times of a retry policy to be texts.
func (r *reading) retry(step string, v any) {
	switch v := v.(type) {
	case map[string]any:
		r.durations(v, step, "fixed", "delay")
		for name, part := range v {
			if name != "when" { // conditions contain texts that are not times
				r.retry(step, part)
			}
		}
	case []any:
		for i := range v {
			held := map[string]any{"time": v[i]}
			r.durations(held, step, "time")
			v[i] = held["time"]
			r.retry(step, v[i])
		}
	}
}

// export checks the function of a step.
func (r *reading) export(step, export string) {
	i := slices.IndexFunc(r.functions, func(f Function) bool { return f.Name == export })
	if i < 0 {
		r.add(problemExport, step, "the module exports no function %s; it has %s", clip(export), orNone(Candidates(r.functions)))
		return
	}
	if f := &r.functions[i]; !f.callable() {
		r.add(problemSignature, step, "the function %s has %d parameters and %d results, a step must have none and at most one",
			clip(export), len(f.Params), len(f.Results))
	}
}

func orNone(candidates []string) string {
	if len(candidates) == 0 {
		return "none that could be a step"
	}
	return list(candidates, 0)
}

// emitted returns the one type of event that an output becomes.
func (r *reading) emitted(step string, v any, output Form) string {
	emits, ok := v.([]any)
	if !ok || output == FormEvents {
		return "" // finish reports errors; with events, the output contains the types
	}
	if len(emits) == 0 {
		return ""
	}
	typ, one := emits[0].(string)
	if len(emits) > 1 || !one {
		r.add(problemManifest, step, "emits has more than one event of one type: output must be \"events\", and name them")
	}
	return typ
}

// typesOf returns the types in a declaration of what a step accepts or emits.
func typesOf(v any) (types []string) {
	slots, _ := v.([]any)
	for _, slot := range slots {
		switch slot := slot.(type) {
		case string:
			types = append(types, slot)
		case []any: // [kind, types]
			if len(slot) > 1 {
				types = append(types, typesOf(slot[1])...)
			}
		}
	}
	return types
}
