package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// show writes down the outcome of a tick.
func (p *player) show(res Result, err error) {
	say := func(format string, args ...any) { fmt.Fprintf(&p.out, "  "+format+"\n", args...) }
	if err != nil {
		say("%s", showError(err))
		return
	}
	for _, r := range res.Response.Results {
		say("result %s", showRaw(r))
	}
	if res.Response.Complete {
		say("collected%s", showEvents(res.Response.Collected))
	}
	if ev := res.Response.Event; ev.Type != "" {
		say("answer%s", showEvents([]abi.Event{ev}))
	}
	if v := res.Response.Value; v != nil {
		say("answer %s", showRaw(v))
	}
	if d := res.Response.Delivery; d.How != "" {
		say("delivered %s %v", d.How, d.To)
	}
	if res.Response.Suspended {
		say("suspended")
	}
	if res.Response.Warning != "" {
		say("warning %s", res.Response.Warning)
	}
	if res.Entry == nil {
		say("no entry")
		return
	}
	say("%s", showEntry(res.Entry))
	for _, c := range res.Commands {
		say("%s", showCommand(c))
	}
}

func showError(err error) string {
	var guest *abi.Error
	var client *host.Error
	switch {
	case errors.As(err, &guest):
		return "guest error: " + guest.Error()
	case errors.As(err, &client):
		return fmt.Sprintf("client error: %s: %s", client.Code, client.Message)
	}
	return "error: " + err.Error()
}

func showCommand(c Command) string {
	switch c := c.(type) {
	case StartAttempt:
		return fmt.Sprintf("attempt %d", c.Invocation)
	case Abandon:
		return fmt.Sprintf("abandon %d", c.Invocation)
	case Publish:
		ev := c.Event
		if ev.Type == abi.TypeStepStateChanged {
			return fmt.Sprintf("%s %d %s", c.HandlerID, ev.Seq, showState(ev.Body))
		}
		marks := ""
		if len(ev.Types) > 0 {
			marks += " " + strings.Join(ev.Types, "<")
		}
		if ev.Terminal {
			marks += " terminal"
		}
		return fmt.Sprintf("%s %d %s%s%s", c.HandlerID, ev.Seq, ev.QualifiedName(), showRaw(ev.Body), marks)
	case RunChanged:
		r := c.Run
		out := fmt.Sprintf("run %s %s steps=%d", r.RunID, r.Status, r.Steps)
		if r.Error != "" || r.ErrorCode != "" {
			out += fmt.Sprintf(" %s %q", r.ErrorCode, r.Error)
		}
		if r.Result != nil {
			out += fmt.Sprintf(" result=%d", r.Result.Seq)
		}
		for _, w := range r.WaitingFor {
			switch {
			case w.Child != "":
				out += fmt.Sprintf(" waits=%s:child %s:%s", w.Step, w.Child, time.Duration(w.Since))
			case w.Resource != "":
				out += fmt.Sprintf(" waits=%s:resource %s:%s", w.Step, w.Resource, time.Duration(w.Since))
			case w.Until != 0:
				out += fmt.Sprintf(" waits=%s:until %s:%s", w.Step, time.Duration(w.Until), time.Duration(w.Since))
			default:
				out += fmt.Sprintf(" waits=%s:%s:%s:%s%s", w.Step+w.Reason, w.Type, w.WaiterID, time.Duration(w.Since), where(w.Requirements))
			}
		}
		for _, k := range r.Kept {
			out += fmt.Sprintf(" keeps=%s:%s", k.Type, k.Step)
		}
		if r.Paused {
			out += " paused"
		}
		if r.Blocked != nil {
			out += " blocked=" + r.Blocked.Code
		}
		return out
	case Mail:
		return "mail to " + c.To
	case CallOut:
		return fmt.Sprintf("call out for %d", c.Invocation)
	case RunEnded:
		return fmt.Sprintf("ended %s %s", c.RunID, c.HandlerID)
	}
	return fmt.Sprintf("%T", c)
}

// showState shortens the body of a StepStateChanged.
func showState(body abi.Raw) string {
	v, _ := abi.DecodeValue(body)
	m, _ := v.(map[string]any)
	output := "null"
	if text, ok := m["output_event_name"].(string); ok {
		output = text
	}
	return fmt.Sprintf("step %s %s %s: %s > %s", m["name"], m["step_state"], m["worker_id"], m["input_event_name"], output)
}

func showEntry(e *Entry) string {
	kinds := map[EntryKind]string{
		EntryStart: "start", EntryPost: "post", EntryEdit: "edit", EntrySend: "send", EntryStream: "stream", EntryCollect: "collect",
		EntryFinish: "finish", EntryTimer: "timer", EntryCancel: "cancel", EntryBlock: "block", EntryShift: "shift",
		EntryChild: "child", EntryDelivered: "delivered", EntryChildEnded: "child-ended", EntryChildShown: "child-shown",
		EntryWait: "wait", EntrySleep: "sleep", EntryPause: "pause", EntryResume: "resume",
		EntryQueue: "queue", EntryBegin: "begin",
		EntryResource: "resource", EntryResourceAnswered: "answered",
		EntryRetry: "retry", EntryMigrate: "migrate", EntryPatch: "patch", EntryExtend: "extend",
	}
	var b strings.Builder
	fmt.Fprintf(&b, "entry %d %s", e.Seq, kinds[e.Kind])
	if e.RunID != "" {
		fmt.Fprintf(&b, " %s", e.RunID)
	}
	if e.Invocation != 0 {
		fmt.Fprintf(&b, " %d/%d", e.Invocation, e.Attempt)
	}
	if p := e.Start; p != nil {
		b.WriteString(showEvents([]abi.Event{p.Event}))
	}
	if e.Event != nil {
		b.WriteString(showEvents([]abi.Event{*e.Event}))
	}
	if e.Step != "" {
		fmt.Fprintf(&b, " to=%s", e.Step)
	}
	if e.Changes != nil {
		changes, err := state.DecodeChanges(e.Changes)
		for _, c := range changes {
			fmt.Fprintf(&b, " %s%v", c.Op, c.Path)
			if c.Value != nil {
				b.WriteString("=" + showRaw(c.Value.Encode()))
			}
		}
		if err != nil {
			b.WriteString(err.Error())
		}
	}
	if p := e.Collect; p != nil {
		fmt.Fprintf(&b, " buffer=%q given=%d added=%d release=%v", p.Buffer, p.Given, p.Added, p.Release)
	}
	if p := e.Finish; p != nil {
		for _, st := range p.Staged {
			how := "send"
			if st.Stream {
				how = "write"
			}
			fmt.Fprintf(&b, " %s%s", how, showEvents([]abi.Event{st.Event}))
		}
		if p.List {
			b.WriteString(" list")
		}
		b.WriteString(showEvents(p.Events))
		if p.Err != nil {
			fmt.Fprintf(&b, " error %s", p.Err)
		}
	}
	if p := e.Wait; p != nil {
		fmt.Fprintf(&b, " for %s id=%s", p.Type, p.ID)
		if p.Requirements != nil {
			b.WriteString(" need=" + showRaw(p.Requirements))
		}
		if p.Broadcast {
			b.WriteString(" broadcast")
		}
		if p.Taken != 0 {
			fmt.Fprintf(&b, " taken=#%d", p.Taken)
		}
	}
	if p := e.Child; p != nil {
		fmt.Fprintf(&b, " %s", p.Key)
		if p.Start != nil {
			fmt.Fprintf(&b, " run=%s handler=%s session=%q%s", p.RunID, p.Start.HandlerID, p.Session, showEvents([]abi.Event{p.Start.Event}))
		}
	}
	if p := e.Delivered; p != nil {
		fmt.Fprintf(&b, " %d to %s", p.ID, p.To)
	}
	if e.Ended != nil {
		b.WriteString(" " + e.Ended.show())
	}
	if p := e.Shown; p != nil {
		fmt.Fprintf(&b, " %s %d %s%s", p.RunID, p.Seq, p.Type, showRaw(p.Body))
	}
	if p := e.Resource; p != nil {
		fmt.Fprintf(&b, " %s %s %s #%d mode=%s", p.Resource, p.Method, showRaw(p.Payload), p.Ordinal, p.Mode)
	}
	if p := e.Answer; p != nil && p.Err != nil {
		fmt.Fprintf(&b, " error %s", p.Err)
	} else if p != nil {
		b.WriteString(" " + showRaw(p.Value))
	}
	if e.Due != 0 {
		fmt.Fprintf(&b, " due=%s", time.Duration(e.Due))
	}
	if e.Timer != 0 {
		fmt.Fprintf(&b, " timer=%d", e.Timer)
	}
	if e.Retry != nil {
		fmt.Fprintf(&b, " retry=%s", time.Duration(e.Retry.Due))
	}
	if e.Fault != nil {
		fmt.Fprintf(&b, " fault %s", e.Fault)
	}
	if e.Lost != 0 {
		fmt.Fprintf(&b, " lost=%s", time.Duration(e.Lost))
	}
	return b.String()
}
