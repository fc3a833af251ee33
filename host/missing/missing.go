// Package missing lists what programs have on other machines but plugins do not, such as
// files, and what plugins use instead.
//
// It does not depend on guests or the host.
package missing

import "strings"

// Thing is something that programs have on other machines, but plugins do not. When a
// step tries to use it, the step's log and the remedy of its error say what to use
// instead.
type Thing uint8

// Things that plugins do not have.
const (
	Files Thing = iota
	Network
	Sleep // a real wait: the language's own sleep only advances the attempt's clock
	Threads
)

// Instead says what to use instead, for a line of a log.
func (m Thing) Instead() string {
	return [...]string{
		Files: "a plugin has no files: put what the step reads into the module (go:embed, include_bytes!), keep what it writes in the state " +
			"(ctx.Set in Go, ctx.set in Rust), or fetch it by a resource (ctx.HTTP, ctx.http); see docs/wasi.md",
		Network: "a plugin has no network: call a resource that the operator has granted (ctx.HTTP or ctx.Call in Go, ctx.http or ctx.call in Rust); " +
			"see docs/resources.md",
		Sleep: "the language's own sleep does not wait in a plugin, it moves the attempt's clock only: ctx.Sleep in Go and ctx.sleep in other languages wait, durably; see docs/wasi.md",
		Threads: "a plugin has one thread: emit several events, and give the step that accepts them several workers (weft.Workers(4) in Go, workers = 4 in Rust), " +
			"so that the host runs several invocations at once; see docs/concepts.md",
	}[m]
}

// symptoms are parts of error messages of the languages' libraries that say that
// something is missing, in small letters. The first symptom that a message contains
// counts.
var symptoms = []struct {
	text    string
	missing Thing
}{
	{"dial tcp", Network}, {"dial udp", Network}, {"listen tcp", Network}, {"listen udp", Network},
	{"no such host", Network}, {"netdev", Network}, {"failed to lookup address", Network},
	{"can't sleep", Sleep},
	{"failed to spawn thread", Threads}, {"scheduler is disabled", Threads}, // Rust, TinyGo
	{"not implemented on wasip1", Files}, {"errno 76", Files}, {"function not implemented", Files}, {"bad file number", Files}, {"bad file descriptor", Files},
	{"operation not supported on this platform", Files},
}

// Hint says what to use instead of something that a plugin lacks, if the message of a
// failed step says that the step has tried to use it; otherwise "".
func Hint(message string) string {
	message = strings.ToLower(message)
	for _, s := range symptoms {
		if strings.Contains(message, s.text) {
			text := s.missing.Instead()
			return strings.ToUpper(text[:1]) + text[1:] + "."
		}
	}
	return ""
}
