package blackbox

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// bootID identifies the present boot of the system.
func bootID() (id [16]byte, ok bool) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(text) == 0 {
		return id, false
	}
	sum := sha256.Sum256(text)
	return [16]byte(sum[:]), true
}

// oomKills returns how many processes the kernel has killed for their memory: in this
// process's control group, and in the whole system. 0: unknown.
func oomKills() (group, system uint64) {
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(text)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				group = counterIn(filepath.Join("/sys/fs/cgroup", path, "memory.events"))
			}
		}
	}
	return group, counterIn("/proc/vmstat")
}

// counterIn returns the number after oom_kill in a file of names and numbers.
func counterIn(file string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(number), 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}
