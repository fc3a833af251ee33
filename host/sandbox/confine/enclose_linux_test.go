package confine

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// enclosedArgument has a test's process enclose itself, and say what it can do then.
const enclosedArgument = "enclosed"

// enclosed is what such a process says.
type enclosed struct {
	Open    []string
	Threads []string          // the status of each
	Errors  map[string]string // of what it tried
}

func TestMain(m *testing.M) {
	if len(os.Args) >= 2 && os.Args[1] == enclosedArgument {
		enclosedMain()
		return
	}
	os.Exit(m.Run())
}

func enclosedMain() {
	done := make(chan struct{}) // other threads, some of before
	for range 4 {
		go func() { _, _ = net.LookupHost("localhost"); <-done }()
	}
	said := enclosed{Open: Enclose("."), Errors: map[string]string{}}
	tasks, err := os.Open("/proc/self/task") // refused, where files are
	if err == nil {
		names, _ := tasks.Readdirnames(-1)
		for _, name := range names {
			status, _ := os.ReadFile("/proc/self/task/" + name + "/status")
			said.Threads = append(said.Threads, string(status))
		}
	}
	for what, try := range map[string]func() error{
		"read":    func() error { _, err := os.ReadFile("/etc/passwd"); return err },
		"outside": func() error { return os.WriteFile("../outside", nil, 0o600) },
		"inside": func() error {
			if err := os.WriteFile("inside.new", []byte("x"), 0o600); err != nil {
				return err
			}
			if err := os.Rename("inside.new", "inside"); err != nil {
				return err
			}
			_, err := os.ReadFile("inside")
			return err
		},
		"program": func() error { return exec.Command("/proc/self/exe", "-test.run=^$").Run() },
		"signal":  func() error { return unix.Kill(unix.Getppid(), 0) },
		"thread":  func() error { return unix.Tgkill(unix.Getppid(), unix.Getppid(), 0) },
		"own":     func() error { return unix.Tgkill(unix.Getpid(), unix.Gettid(), 0) },
		"network": func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err },
	} {
		if err := try(); err != nil {
			said.Errors[what] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(said)
}

// An enclosed process has no privileges but those that it needs, as far as the kernel
// can take them; what stays open is said.
func TestEnclose(t *testing.T) {
	cmd := exec.Command(os.Args[0], enclosedArgument)
	cmd.Dir = filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(cmd.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var said enclosed
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatal(err)
	}
	open := strings.Join(said.Open, "; ")
	t.Logf("open: %q", open)
	fails := func(what string, want bool) {
		t.Helper()
		if got := said.Errors[what] != ""; got != want {
			t.Errorf("%s: %q", what, said.Errors[what])
		}
	}
	fails("inside", false)
	fails("own", false)
	if !strings.Contains(open, "seccomp") {
		fails("program", true)
		fails("network", true)
		fails("signal", true)
		fails("thread", true)
		for i, status := range said.Threads {
			for _, want := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
				if !strings.Contains(status, want) {
					t.Errorf("thread %d has no %q", i, want)
				}
			}
		}
	}
	landlocked := !strings.Contains(open, "Landlock")
	fails("read", landlocked)
	fails("outside", landlocked)
	if !landlocked && len(said.Threads) < 4 {
		t.Errorf("%d threads", len(said.Threads))
	}
}
