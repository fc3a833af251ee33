package host

// ResourceMode says when a call of a resource is made, and whether again if its
// outcome is not known: after a crash, or an attempt that ended before the answer.
type ResourceMode string

// The values of ResourceMode.
const (
	// ResourceReadOnly: the call changes nothing outside. It need not wait until
	// its intent is durable, and is made again.
	ResourceReadOnly ResourceMode = "read_only"
	// ResourceRepeat: the call is made again, under the same key.
	ResourceRepeat ResourceMode = "repeat"
	// ResourceFail: the call is made at most once; an outcome that is not known is
	// an error to the step.
	ResourceFail ResourceMode = "fail"
)

// Valid reports whether the mode is one of these.
func (m ResourceMode) Valid() bool {
	return m == ResourceReadOnly || m == ResourceRepeat || m == ResourceFail
}
