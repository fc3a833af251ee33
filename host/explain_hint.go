package host

import "strings"

// Missing is something that a program has on other machines, and a plugin has not. When a
// step tries to use it, the step's log and the remedy of its error say what to use instead.
type Missing uint8

// What plugins do without.
const (
	MissingFiles Missing = iota
	MissingNetwork
	MissingSleep // that waits: the language's own only moves the attempt's clock
	MissingThreads
)

// Instead says what to use instead, for a line of a log.
func (m Missing) Instead() string {
	return [...]string{
		MissingFiles: "a plugin has no files: put what the step reads into the module (go:embed, include_bytes!), keep what it writes in the state " +
			"(ctx.Set in Go, ctx.set in Rust), or fetch it by a resource (ctx.HTTP, ctx.http); see docs/wasi.md",
		MissingNetwork: "a plugin has no network: call a resource that the operator has granted (ctx.HTTP or ctx.Call in Go, ctx.http or ctx.call in Rust); " +
			"see docs/resources.md",
		MissingSleep: "the language's own sleep does not wait in a plugin, it moves the attempt's clock only: ctx.Sleep in Go and ctx.sleep in Rust wait, durably; see docs/wasi.md",
		MissingThreads: "a plugin has one thread: emit several events, and give the step that accepts them several workers (weft.Workers(4) in Go, workers = 4 in Rust), " +
			"so that the host runs several invocations at once; see docs/concepts.md",
	}[m]
}

// symptoms are parts of the errors by which the languages' libraries say that something
// is missing, in small letters. The first one that an error has counts.
var symptoms = []struct {
	text    string
	missing Missing
}{
	{"dial tcp", MissingNetwork}, {"dial udp", MissingNetwork}, {"listen tcp", MissingNetwork}, {"listen udp", MissingNetwork},
	{"no such host", MissingNetwork}, {"netdev", MissingNetwork}, {"failed to lookup address", MissingNetwork},
	{"can't sleep", MissingSleep},
	{"failed to spawn thread", MissingThreads}, {"scheduler is disabled", MissingThreads}, // Rust, TinyGo
	{"not implemented on wasip1", MissingFiles}, {"errno 76", MissingFiles}, {"function not implemented", MissingFiles}, {"bad file number", MissingFiles}, {"bad file descriptor", MissingFiles},
	{"operation not supported on this platform", MissingFiles},
}

// Hint says what to use in the place of something that a plugin lacks, if the message of
// a failed step says that the step has tried to use it; else "".
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
