package hostcall

import (
	"strings"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
)

// log keeps a log record for the next entry.
func (a *Attempt) log(req []byte, clock int64) error {
	m, err := abi.DecodeLog(req)
	if err != nil {
		return invalid(err)
	}
	return a.keepLog(engine.LogRecord{Level: m.Level, Message: m.Message, Attrs: m.Attrs, Clock: clock})
}

// Print keeps what the guest wrote to file 1 or 2; it implements host.Calls.
// Of what comes before the last effect the log has it already. What exceeds
// the log limits is dropped: a guest that prints too much is not wrong.
func (a *Attempt) Print(fd uint32, text []byte) {
	if a.n < a.lastEffect {
		return
	}
	msg := strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n"), string(utf8.RuneError))
	if msg == "" {
		return
	}
	if n := len(a.logs); n > 0 && a.logs[n-1].FD == fd && !a.logs[n-1].Complete {
		// Runtimes write a line in pieces.
		if a.logBytes += len(msg); a.logBytes <= a.open.Limits.LogBytes {
			a.logs[n-1].Message += msg
			a.logs[n-1].Complete = text[len(text)-1] == '\n'
		}
		return
	}
	_ = a.keepLog(engine.LogRecord{Message: msg, FD: fd, Complete: text[len(text)-1] == '\n'})
}

func (a *Attempt) keepLog(r engine.LogRecord) error {
	a.logLines++
	a.logBytes += len(r.Message) + len(r.Attrs)
	l := a.open.Limits
	if a.logLines > l.LogLines || a.logBytes > l.LogBytes {
		return limitf("more than %d lines or %d bytes of log in one invocation (limits log_lines, log_bytes)", l.LogLines, l.LogBytes)
	}
	a.logs = append(a.logs, r)
	return nil
}

// Logs gives what was logged since the last effect.
func (a *Attempt) Logs() []engine.LogRecord { return a.logs }
