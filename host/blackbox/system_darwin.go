package blackbox

import (
	"crypto/sha256"
	"syscall"
)

// bootID identifies the present boot of the system.
func bootID() (id [16]byte, ok bool) {
	text, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil || text == "" {
		return id, false
	}
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:]), true
}

// oomKills returns zeros: the system has no such counters.
func oomKills() (group, system uint64) { return 0, 0 }
