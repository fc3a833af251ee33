package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUserCode: the folder is the one that a variable names, or in the user's cache. A
// folder that cannot be made is none.
func TestUserCode(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("LocalAppData", home)
	t.Setenv("WEFT_CACHE", "")
	folder := UserCode()
	if rel, err := filepath.Rel(home, folder); err != nil || !filepath.IsLocal(rel) || filepath.Base(folder) != "code" {
		t.Errorf("the user's folder is %q", folder)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	named := filepath.Join(home, "named")
	t.Setenv("WEFT_CACHE", named)
	if got := UserCode(); got != named {
		t.Errorf("the named folder is %q", got)
	}
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEFT_CACHE", filepath.Join(home, "file"))
	if got := UserCode(); got != "" {
		t.Errorf("a file is taken for a folder: %q", got)
	}
}
