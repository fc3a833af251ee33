package cli

import (
	"os"
	"path/filepath"
)

// UserCode returns the folder in which the commands of this user share compiled code:
// the one that the environment variable WEFT_CACHE names, or weft/code in the user's
// cache directory ($XDG_CACHE_HOME, or ~/.cache). It returns "" if the folder cannot be
// made. Its caller then compiles without a cache.
func UserCode() string {
	folder := os.Getenv("WEFT_CACHE")
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		folder = filepath.Join(user, "weft", "code")
	}
	if os.MkdirAll(folder, 0o700) != nil {
		return ""
	}
	probe, err := os.CreateTemp(folder, "probe-")
	if err != nil {
		return ""
	}
	name := probe.Name()
	if probe.Close() != nil || os.Remove(name) != nil {
		return ""
	}
	return folder
}
