package hosttest_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
)

// operation returns what a line tells a puppet to do: [name, request].
func (sc *scene) operation() (abi.Raw, error) {
	var name abi.Import
	var msg interface{ Encode() ([]byte, error) }
	var err error
	switch sc.verb {
	case "finish":
		var out abi.StepOutput
		if out, err = readOutput(sc.rest); err == nil {
			name, msg = "output", out
		}
	case "edit":
		return editOperation(sc.rest)
	case "send":
		var send abi.SendEvent
		send.Step = sc.option("step")
		send.Event, _, err = readEvent(sc.rest)
		name, msg = abi.ImportSendEvent, send
	case "write":
		var write abi.WriteStream
		write.Event, _, err = readEvent(sc.rest)
		name, msg = abi.ImportWriteStream, write
	case "collect":
		name = abi.ImportCollect
		msg, err = readCollect(sc)
	case "wait":
		name = abi.ImportWait
		msg, err = readWait(*sc)
	case "sleep":
		var d time.Duration
		d, err = time.ParseDuration(strings.TrimSpace(sc.rest))
		name, msg = abi.ImportSleep, abi.Sleep{Duration: d}
	default:
		return nil, fmt.Errorf("unknown verb %s", sc.verb)
	}
	if err != nil {
		return nil, err
	}
	return operation(name, msg)
}

func operation(name abi.Import, msg interface{ Encode() ([]byte, error) }) (abi.Raw, error) {
	request, err := msg.Encode()
	if err != nil {
		return nil, err
	}
	return abi.EncodeValue([]any{string(name), abi.Raw(request)})
}

func editOperation(text string) (abi.Raw, error) {
	edits, err := readEdits(text)
	if err != nil {
		return nil, err
	}
	request, err := abi.EncodeEdits(edits)
	if err != nil {
		return nil, err
	}
	return abi.EncodeValue([]any{string(abi.ImportStateEdit), abi.Raw(request)})
}

// readEdits reads edits: OP PATH [VALUE] [; OP PATH [VALUE]]...
func readEdits(text string) ([]abi.Edit, error) {
	var edits []abi.Edit
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), ";")) {
		var e abi.Edit
		op, rest, _ := strings.Cut(text, " ")
		e.Op, text = abi.Op(op), rest
		if e.Op != abi.OpClear {
			e.Path, text, _ = strings.Cut(text, " ")
		}
		if e.Op != abi.OpClear && e.Op != abi.OpDelete {
			var err error
			if e.Value, text, err = readJSON(text); err != nil {
				return nil, err
			}
		}
		edits = append(edits, e)
	}
	return edits, nil
}

func readCollect(sc *scene) (abi.CollectEvents, error) {
	line := *sc
	c := abi.CollectEvents{Buffer: line.option("buffer")}
	ev, rest, err := readEvent(line.rest)
	c.Event = ev
	if list := strings.TrimSpace(rest); list != "-" {
		c.Expected = strings.Split(list, ",")
	}
	return c, err
}

func readWait(line scene) (abi.WaitForEvent, error) {
	var w abi.WaitForEvent
	w.WaiterID = line.option("id")
	if w.WaiterID == "" {
		w.WaiterID = "w"
	}
	var err error
	if need := line.option("need"); need != "" {
		if w.Requirements, _, err = readJSON(need); err != nil {
			return w, err
		}
	}
	if ask := line.option("ask"); ask != "" {
		ev, _, err := readEvent(ask)
		if err != nil {
			return w, err
		}
		w.WaiterEvent = &ev
	}
	if d := line.option("for"); d != "" {
		if w.Timeout, err = time.ParseDuration(d); err != nil {
			return w, err
		}
	}
	w.Broadcast = line.option("broadcast") != ""
	w.Type = strings.TrimSpace(line.rest)
	return w, nil
}

// readJSON reads a value and returns the rest.
func readJSON(text string) (abi.Raw, string, error) {
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return nil, "", err
	}
	out, err := abi.FromJSON(raw)
	return out, text[d.InputOffset():], err
}

// readEvent reads TYPE, #ID and a JSON object, the last two optional.
func readEvent(text string) (abi.Event, string, error) {
	text = strings.TrimLeft(text, " ")
	n := strings.IndexAny(text, " {#]")
	if n < 0 {
		n = len(text)
	}
	ev := abi.Event{Type: text[:n], Body: abi.EmptyMap}
	text = text[n:]
	var err error
	if strings.HasPrefix(text, "#") {
		n := len(text) - len(strings.TrimLeft(text[1:], "0123456789"))
		if ev.ID, err = strconv.ParseUint(text[1:n], 10, 64); err != nil {
			return ev, "", err
		}
		text = text[n:]
	}
	if strings.HasPrefix(text, "{") {
		ev.Body, text, err = readJSON(text)
	}
	return ev, text, err
}

func readOutput(text string) (abi.StepOutput, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "null"):
		return abi.StepOutput{}, nil
	case strings.HasPrefix(text, "error "):
		_, text, _ = strings.Cut(text, " ")
		code, text, _ := strings.Cut(text, " ")
		raw, rest, err := readJSON(text)
		if err != nil {
			return abi.StepOutput{}, err
		}
		message, _ := abi.DecodeValue(raw)
		e := &abi.Error{Code: code, Message: fmt.Sprint(message)}
		if strings.TrimSpace(rest) == "final" {
			final := false
			e.Retryable = &final
		}
		return abi.StepOutput{Err: e}, nil
	case strings.HasPrefix(text, "["):
		out := abi.StepOutput{List: true}
		for text = text[1:]; ; {
			text = strings.TrimLeft(text, " ")
			if strings.HasPrefix(text, "]") {
				return out, nil
			}
			ev, rest, err := readEvent(text)
			if err != nil {
				return out, err
			}
			out.Events, text = append(out.Events, ev), rest
		}
	}
	ev, _, err := readEvent(text)
	return abi.StepOutput{Events: []abi.Event{ev}}, err
}
