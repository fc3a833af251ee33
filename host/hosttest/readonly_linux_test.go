package hosttest_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// loopDisk makes and mounts a file system for the data of a server. The test is skipped
// if the process may not mount file systems.
func loopDisk(t *testing.T) (image, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a file system")
	}
	mkfs := findMkfs()
	if mkfs == "" {
		suite.Missing(t, "needs mkfs.ext4: make toolchain, or install e2fsprogs")
	}
	image, dir = filepath.Join(t.TempDir(), "disk"), t.TempDir()
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 96<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("needs a kernel and a container that allow loop mounts: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "--lazy", dir).Run() }) // a failed test may have unmounted it
	return image, dir
}

// findMkfs returns the path of mkfs.ext4, or "". Its folder is not on every user's PATH.
func findMkfs() string {
	for _, program := range []string{"mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"} {
		if path, err := exec.LookPath(program); err == nil {
			return path
		}
	}
	return ""
}

// The system makes the server's file system read-only, as it does when a disk fails. The
// server answers 503 with the reason. When the file system is writable again, the same
// process continues with everything that it has acknowledged.
func TestFileSystemThatTurnsReadOnly(t *testing.T) {
	image, disk := loopDisk(t)
	data := filepath.Join(disk, "data")
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	for n := range 3 {
		expect(t, p.Result(t, "counter", in("chat", nil)), fmt.Sprint(n+1))
	}
	waiting := p.RunNoWait(t, "counter", in("chat", nil)) // acknowledged, so it counts
	if out, err := exec.Command("mount", "-o", "remount,abort", disk).CombinedOutput(); err != nil {
		t.Skipf("this file system cannot be made read-only while it is written: %v: %s", err, out)
	}
	if status, out := p.Do(t, http.MethodPost, "/workflows/counter/run", in("chat", nil)); status != http.StatusServiceUnavailable {
		t.Errorf("a start on a read-only file system: %d %s", status, out)
	}
	eventually(t, "the server tells why it does not answer", func() bool {
		_, out := p.Do(t, http.MethodGet, "/ready", nil)
		return strings.Contains(string(out), `"status":"unhealthy"`) && strings.Contains(string(out), "is being opened again")
	})
	eventually(t, "it tries again in vain", func() bool { return strings.Contains(p.Log(), "read-only file system") })
	eventually(t, "the file system can be unmounted", func() bool { return exec.Command("umount", disk).Run() == nil })
	eventually(t, "it does not begin anew in the empty directory", func() bool { return strings.Contains(p.Log(), "was there until now") })
	if left, err := os.ReadDir(disk); len(left) > 0 || err != nil {
		t.Errorf("the server made %v where its file system is not mounted: %v", left, err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, disk).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	eventually(t, "the same process serves again", func() bool {
		status, _ := p.Do(t, http.MethodGet, "/ready", nil)
		return status == http.StatusOK
	})
	eventually(t, "what was acknowledged ends", func() bool { return strings.Contains(show(t, &p.Host, waiting.HandlerID), `"completed"`) })
	expect(t, p.Result(t, "counter", in("chat", nil)), "5")
	p.Kill(t)
	clean(t, data)
}
