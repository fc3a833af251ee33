package flow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
)

// output is the output of a node: a StepOutput.
type output struct {
	name    string
	content any
	success bool
	err     string
	stop    bool
	steps   []output
}

// value returns the output as it appears in events: without empty fields.
func (o *output) value() map[string]any {
	v := map[string]any{"step_name": o.name, "content": o.content, "success": o.success}
	if o.err != "" {
		v["error"] = o.err
	}
	if o.stop {
		v["stop"] = true
	}
	if len(o.steps) > 0 {
		v["steps"] = values(o.steps)
	}
	return v
}

func values(list []output) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = list[i].value()
	}
	return out
}

// outputOf reads the answer of a function or a branch. The error names the invalid field.
func outputOf(v map[string]any) (output, error) {
	o := output{content: v["content"]}
	var ok bool
	if e, given := given(v, "error"); given {
		if o.err, ok = e.(string); !ok {
			return o, fmt.Errorf("its \"error\" is not a text")
		}
	}
	o.success = o.err == ""
	if s, given := given(v, "success"); given {
		if o.success, ok = s.(bool); !ok {
			return o, fmt.Errorf("its \"success\" is neither true nor false")
		}
	}
	if s, given := given(v, "stop"); given {
		if o.stop, ok = s.(bool); !ok {
			return o, fmt.Errorf("its \"stop\" is neither true nor false")
		}
	}
	if n, given := given(v, "step_name"); given {
		if o.name, ok = n.(string); !ok {
			return o, fmt.Errorf("its \"step_name\" is not a text")
		}
	}
	inner, has := given(v, "steps")
	if !has {
		return o, nil
	}
	list, ok := inner.([]any)
	if !ok {
		return o, fmt.Errorf("its \"steps\" are not a list")
	}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return o, fmt.Errorf("its \"steps\" are not a list of outputs")
		}
		step, err := outputOf(m)
		if err != nil {
			return o, fmt.Errorf("one of its \"steps\": %w", err)
		}
		o.steps = append(o.steps, step)
	}
	return o, nil
}

// given returns a field that is neither missing nor null.
func given(v map[string]any, name string) (any, bool) {
	field := v[name]
	return field, field != nil
}

// deepest returns the last output in a container: the last of the last.
func (o *output) deepest() *output {
	for len(o.steps) > 0 {
		o = &o.steps[len(o.steps)-1]
	}
	return o
}

// scope is what a node sees of the nodes before it. A scope does not change: after makes
// a new one.
type scope struct {
	input      any
	additional any
	content    any
	outputs    map[string]any // contents by name
}

// after returns the scope after a node.
func (s *scope) after(o *output) *scope {
	next := *s
	next.content = o.deepest().content // a container's own content is for people
	next.outputs = make(map[string]any, len(s.outputs)+1)
	maps.Copy(next.outputs, s.outputs)
	next.outputs[o.name] = o.value()
	return &next
}

// afterAll returns the scope after several nodes.
func (s *scope) afterAll(outputs []output) *scope {
	for i := range outputs {
		s = s.after(&outputs[i])
	}
	return s
}

// event returns the body of a StepInput.
func (s *scope) event(call string) map[string]any {
	v := map[string]any{"input": s.input, "previous_step_content": s.content, "previous_step_outputs": s.outputs}
	if s.additional != nil {
		v["additional_data"] = s.additional
	}
	if s.outputs == nil {
		v["previous_step_outputs"] = map[string]any{}
	}
	if call != "" {
		v[FieldCall] = call
	}
	return v
}

// contents returns outputs as expressions see them: their contents by name.
func contents(outputs map[string]any) map[string]any {
	out := make(map[string]any, len(outputs))
	for name, v := range outputs {
		m, _ := v.(map[string]any)
		out[name] = orText(m["content"])
	}
	return out
}

// within adds to contents the outputs of nested nodes that paths name: the branch web of
// the node research is research/web. If several outputs have the same name, such as the
// iterations of a loop, the last one counts.
func within(contents, outputs map[string]any, paths []string) map[string]any {
	for _, path := range paths {
		name, rest, _ := strings.Cut(path, "/")
		out, _ := outputs[name].(map[string]any)
		for out != nil && rest != "" {
			name, rest, _ = strings.Cut(rest, "/")
			steps, _ := out["steps"].([]any)
			out = nil
			for _, step := range slices.Backward(steps) {
				if m, _ := step.(map[string]any); m != nil && m["step_name"] == name {
					out = m
					break
				}
			}
		}
		if out != nil {
			contents[path] = orText(out["content"])
		}
	}
	return contents
}

// orText returns a value, or "" for nil, so that expressions may compare texts without a
// test for null.
func orText(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func orMap(v any) any {
	if m, ok := v.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

// body encodes the body of an event.
func body(v map[string]any) (abi.Raw, error) {
	raw, err := abi.EncodeValue(v)
	if err != nil {
		return nil, fmt.Errorf("it cannot be put into an event: %w", err)
	}
	return raw, nil
}

// summary returns the content of a parallel node: the outputs of its branches as text.
func summary(outputs []output) string {
	var b strings.Builder
	b.WriteString("## Parallel Execution Results\n\n")
	for i := range outputs {
		o := &outputs[i]
		mark := "✅ SUCCESS:"
		if !o.success {
			mark = "❌ FAILURE:"
		}
		fmt.Fprintf(&b, "### %s %s\n", mark, o.name)
		if text := plain(o.content); strings.TrimSpace(text) != "" {
			b.WriteString(text + "\n\n")
		} else {
			b.WriteString("*(No content)*\n\n")
		}
	}
	return strings.TrimSpace(b.String())
}

// plain returns a value as text: a text unchanged, any other value as JSON.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := abi.EncodeValue(v)
	if err != nil {
		return ""
	}
	text, err := abi.ToJSON(raw)
	if err != nil {
		return ""
	}
	return string(text)
}
