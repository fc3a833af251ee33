package hostcall

import (
	"log/slog"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/missing"
)

// log keeps a log record for the next entry.
func (a *Attempt) log(req []byte, clock int64) error {
	m, err := abi.DecodeLog(req)
	if err != nil {
		return invalid(err)
	}
	return a.keepLog(engine.LogRecord{Level: m.Level, Message: m.Message, Attrs: m.Attrs, Clock: clock})
}

// Print keeps text that the guest wrote to file 1 or 2. It implements host.Calls. Text
// before the last effect is dropped, because the log has it already. Text beyond the log
// limits is dropped too, without an error.
func (a *Attempt) Print(fd uint32, text []byte) {
	if a.n < a.lastEffect {
		return
	}
	for line := range strings.SplitAfterSeq(strings.ToValidUTF8(string(text), string(utf8.RuneError)), "\n") {
		if line == "" || a.printLine(fd, line) != nil {
			return
		}
	}
}

// hostSource are the attributes of log lines that the host adds.
var hostSource = constant(abi.EncodeValue(map[string]any{"source": "host"}))

func constant(value abi.Raw, err error) abi.Raw {
	if err != nil {
		panic(err) // a constant: every test would see it
	}
	return value
}

// Advise logs that the guest tried to use something that is missing. It implements
// host.Adviser. Up to the last recorded effect, a replay logs nothing: the log already has
// the line.
func (a *Attempt) Advise(m missing.Thing) {
	if a.n >= a.lastEffect {
		_ = a.keepLog(engine.LogRecord{Level: int64(slog.LevelWarn), Message: m.Instead(), Attrs: hostSource})
	}
}

// printLine keeps a line, or a piece of a line that does not end with a newline.
func (a *Attempt) printLine(fd uint32, line string) error {
	msg, complete := strings.TrimRight(line, "\r\n"), strings.HasSuffix(line, "\n")
	n := len(a.logs)
	if n == 0 || a.logs[n-1].FD != fd || a.logs[n-1].Complete {
		if msg == "" {
			return nil
		}
		return a.keepLog(engine.LogRecord{Level: printedLevel(msg), Message: msg, FD: fd, Complete: complete})
	}
	// Runtimes may write a line in pieces: join them.
	last := &a.logs[n-1]
	last.Complete = complete
	if a.logBytes += len(msg); a.logBytes <= a.open.Limits.LogBytes {
		last.Message += msg
		last.Level = printedLevel(last.Message)
	}
	return nil
}

// panics are the beginnings of the lines by which runtimes report a panic.
var panics = []string{"panic: ", "fatal error: ", "runtime error: ", "thread '"}

// printedLevel returns the level of a printed line: error for the line of a panic, else
// info. The file does not tell: Go and Rust write panics to file 2, TinyGo to file 1.
func printedLevel(line string) int64 {
	if !slices.ContainsFunc(panics, func(p string) bool { return strings.HasPrefix(line, p) }) {
		return int64(slog.LevelInfo)
	}
	if strings.HasPrefix(line, "thread '") && !strings.Contains(line, "' panicked at") {
		return int64(slog.LevelInfo)
	}
	return int64(slog.LevelError)
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

// Logs returns the lines that were logged since the last effect.
func (a *Attempt) Logs() []engine.LogRecord { return a.logs }
