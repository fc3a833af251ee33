package confine

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enclose permanently drops privileges of this process: files outside the folder,
// starting programs, the network, other processes. It returns what could not be dropped,
// and why.
func Enclose(folder string) (open []string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return append(open, fmt.Sprintf("no_new_privs: %v", err))
	}
	if err := encloseFiles(folder); err != nil {
		open = append(open, fmt.Sprintf("files (Landlock): %v", err))
	}
	// This comes last, because it applies this thread's privileges to all existing
	// threads.
	if err := filterCalls(); err != nil {
		open = append(open, fmt.Sprintf("system calls (seccomp): %v", err))
	}
	return open
}

// encloseFiles leaves this process access to the files in a folder and to open files.
func encloseFiles(folder string) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("the kernel has none: %w", errno)
	}
	const first = 1<<13 - 1 // the rights known to the first version
	access := uint64(first)
	for _, later := range []struct {
		version uintptr
		right   uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}} {
		if version >= later.version {
			access |= later.right
		}
	}
	attr := unix.LandlockRulesetAttr{Access_fs: access}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Access_fs), 0)
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(int(rules)) }()
	at, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: access &^ unix.LANDLOCK_ACCESS_FS_EXECUTE, Parent_fd: int32(at)}
	_, _, errno = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	// The rules belong to a thread, so every existing thread must take them.
	if _, _, errno = syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno == unix.ENOTSUP {
		return errors.New("this program is built with cgo, which keeps threads of its own")
	} else if errno != 0 {
		return errno
	}
	if _, _, errno = syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// refusedCalls are system calls that a compiler never makes: they run programs, reach the
// network or other processes, or change the system. All other calls are subject to the
// kernel's own rules only.
var refusedCalls = []uint32{
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN,
	unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_OPEN,
	unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_KCMP, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_IO_URING_SETUP, unix.SYS_USERFAULTFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON,
	unix.SYS_SYSLOG, unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETRESUID, unix.SYS_SETRESGID, unix.SYS_CAPSET,
}

// Offsets of the call number, the architecture and the arguments in struct seccomp_data.
const (
	callNumber = 0
	callArch   = 4
	callFirst  = 16 // the low half of the first argument, on both architectures
)

// filterCalls makes the kernel refuse refusedCalls to all threads of this process.
func filterCalls() error {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return fmt.Errorf("no filter for %s", runtime.GOARCH)
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	give := func(what uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what} }
	// Other architectures number their calls differently, and so does the second ABI of
	// amd64.
	const other = 0x4000_0000
	program := []unix.SockFilter{
		load(callArch),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: arch},
		give(unix.SECCOMP_RET_KILL_PROCESS),
		load(callNumber),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jf: 1, K: other},
		give(unix.SECCOMP_RET_KILL_PROCESS),
	}
	for _, call := range refusedCalls {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call},
			give(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)))
	}
	// Go's scheduler sends signals to threads of this process. Signals to other processes
	// are refused.
	program = append(program,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_TGKILL},
		load(callFirst),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: uint32(unix.Getpid())},
		give(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM)),
		give(unix.SECCOMP_RET_ALLOW))
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	failed, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	switch {
	case errno != 0:
		return errno
	case failed != 0:
		return fmt.Errorf("thread %d has a filter of its own", failed)
	}
	return nil
}
