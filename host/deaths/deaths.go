// Package deaths describes how a server's process ended: what held a core then, and which
// work is suspected.
//
// It does not depend on how notes are kept, or on how a suspicion is judged.
package deaths

// CoreKind says what kind of work holds a core.
type CoreKind uint64

// Kinds of work that may end the process.
const (
	CoreRun  CoreKind = 1 + iota // a run of a guest
	CoreCall                     // a resource call while it is made
	CoreLoad                     // the load of a session
)

// CoreNote names work that holds a core, and how far the work has come.
type CoreNote struct {
	Kind       CoreKind
	Tenant     string
	Session    string
	Invocation uint64 // 0 for a load
	Attempt    uint64 // 0 for a load
	// Kept is how many calls of the attempt's record were durable when this life of the
	// server started the attempt. It increases if the attempt advances during a life.
	Kept   uint64
	Digest [8]byte // of the workflow's version: a hash
	Step   [8]byte // hash of the step's name
	// Calls is how many host calls the guest has made, Import the latest of them.
	Calls  uint64
	Import string
	Burnt  uint64 // units, at the latest checkpoint
}

// CoreKey is the part of a note that stays the same over the lives of a server.
type CoreKey struct {
	Kind       CoreKind
	Tenant     string
	Session    string
	Invocation uint64
	Attempt    uint64
}

// Key returns the note's key.
func (n *CoreNote) Key() CoreKey {
	return CoreKey{n.Kind, n.Tenant, n.Session, n.Invocation, n.Attempt}
}

// CorePhase is what a server does when its process ends.
type CorePhase uint64

// Phases of a server's life.
const (
	PhaseServing CorePhase = 1 + iota
	PhaseApart             // suspects run one after the other
	PhaseControl           // a pause in which nothing holds a core
	PhaseClosed            // the server has ended cleanly
)

// DeathClass is what is known about why a process ended.
type DeathClass string

// Classes of deaths. A kill from outside is unknown.
const (
	DeathNone    DeathClass = ""
	DeathCrash   DeathClass = "crash"  // the Go runtime wrote a crash report
	DeathMemory  DeathClass = "memory" // the system killed a process for its memory
	DeathUnknown DeathClass = "unknown"
)

// Suspect is work that held a core when a process ended. Its note is from the latest
// death at which the work was alone, or from the latest death if it was never alone.
type Suspect struct {
	CoreNote
	Noted  uint32 // deaths at which the work held a core
	Alone  uint32 // deaths at which no other work held a core
	Hard   uint32 // deaths of Alone whose class is crash or memory
	Same   uint32 // the latest deaths of Alone, if all were at one place
	Blamed bool   // the work ends the process: for similar work, one death alone is enough
}

// Suspicion is passed from one life of a server to the next.
type Suspicion struct {
	Suspects []Suspect
	// MemoryDeaths are the times of the two latest deaths of class memory, latest first,
	// in Unix nanoseconds; 0: none.
	MemoryDeaths [2]int64
}

// Death says how the previous process ended.
type Death struct {
	Class DeathClass
	Phase CorePhase
	Noted []CoreNote // what held a core
	Suspicion
}
