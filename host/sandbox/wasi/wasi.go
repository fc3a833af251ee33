// Package wasi serves the imports of wasi_snapshot_preview1 to a guest. It is a
// deterministic subset: what TinyGo, Go and Rust need to start, to print, to tell the
// time and to sleep. There are no files, sockets, arguments, environment variables or
// waiting.
//
//	args_*, environ_*                  empty
//	clock_time_get, clock_res_get      the invocation's virtual clock, in steps of 1 ns
//	random_get                         the invocation's seeded stream
//	fd_write to 1 and 2                text for the log
//	fd_read from 0                     end of file
//	fd_close, fd_fdstat_*, fd_seek,    of 0, 1 and 2: character devices
//	fd_tell, fd_filestat_get,
//	fd_datasync, fd_sync
//	fd_prestat_*, other fd_*           EBADF: no such file
//	poll_oneoff                        moves the virtual clock to the earliest deadline and returns at once
//	proc_exit                          ends the guest
//	sched_yield                        does nothing
//	path_*, sock_*, proc_raise         ENOSYS; Host.Lacks is called for files and sockets
//
// docs/wasi.md lists all functions, and says how Go, TinyGo and Rust use them.
//
// The package must not depend on what an invocation is: it calls a [Host]. It has no
// state, so any number of guests may use its functions concurrently.
package wasi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host/missing"
)

// ModuleName is the import module that this package serves.
const ModuleName = "wasi_snapshot_preview1"

// Host is what an invocation provides to WASI. Its methods are called on the guest's
// goroutine. Each may unwind the guest by a panic.
type Host interface {
	// Clock returns the virtual clock, in nanoseconds since the Unix epoch.
	Clock() int64
	// Poll counts one poll_oneoff and moves the virtual clock forward to the given time.
	// A time in the past does not move the clock.
	Poll(until int64)
	// Work is called for each list of the guest's before the host processes its items:
	// the guest chooses their number.
	Work(items int)
	// Random fills p, at most 64 KiB, from the guest's seeded stream. Longer requests
	// come in pieces, so that the host can charge for each piece and stop the guest in
	// between.
	Random(p []byte)
	// Print receives text, at most 64 KiB, that the guest wrote to file 1 or 2. Longer
	// texts come in pieces, as for Random. text is valid during the call only.
	Print(fd uint32, text []byte)
	// Lacks is called when the guest tries to use a file or a socket.
	Lacks(m missing.Thing)
	// Exit ends the guest; it does not return.
	Exit(code uint32)
}

// The errnos of preview 1 used here.
const (
	errnoSuccess = 0
	errnoBadf    = 8
	errnoFault   = 21
	errnoInval   = 28
	errnoNosys   = 52
	errnoSpipe   = 70
)

// call serves one import. args are the raw parameters; the result is an errno.
type call func(h Host, mem api.Memory, args []uint64) uint32

type function struct {
	params string // of the signature: i for i32, I for i64
	call   call
	none   bool // has no result
}

// functions holds every function of preview 1. It includes functions that are not served,
// because toolchains import them even if the program does not use them.
var functions = map[string]function{
	"args_get":                {params: "ii", call: succeed},
	"args_sizes_get":          {params: "ii", call: noStrings},
	"environ_get":             {params: "ii", call: succeed},
	"environ_sizes_get":       {params: "ii", call: noStrings},
	"clock_res_get":           {params: "ii", call: clockRes},
	"clock_time_get":          {params: "iIi", call: clockTime},
	"fd_advise":               {params: "iIIi", call: badFile},
	"fd_allocate":             {params: "iII", call: badFile},
	"fd_close":                {params: "i", call: onStdio},
	"fd_datasync":             {params: "i", call: onStdio},
	"fd_fdstat_get":           {params: "ii", call: fdstatGet},
	"fd_fdstat_set_flags":     {params: "ii", call: onStdio},
	"fd_fdstat_set_rights":    {params: "iII", call: onStdio},
	"fd_filestat_get":         {params: "ii", call: filestatGet},
	"fd_filestat_set_size":    {params: "iI", call: badFile},
	"fd_filestat_set_times":   {params: "iIIi", call: badFile},
	"fd_pread":                {params: "iiiIi", call: seekStdio},
	"fd_prestat_get":          {params: "ii", call: noDirectory},
	"fd_prestat_dir_name":     {params: "iii", call: badFile},
	"fd_pwrite":               {params: "iiiIi", call: seekStdio},
	"fd_read":                 {params: "iiii", call: fdRead},
	"fd_readdir":              {params: "iiiIi", call: badFile},
	"fd_renumber":             {params: "ii", call: badFile},
	"fd_seek":                 {params: "iIii", call: seekStdio},
	"fd_sync":                 {params: "i", call: onStdio},
	"fd_tell":                 {params: "ii", call: seekStdio},
	"fd_write":                {params: "iiii", call: fdWrite},
	"path_create_directory":   {params: "iii", call: noFiles},
	"path_filestat_get":       {params: "iiiii", call: noFiles},
	"path_filestat_set_times": {params: "iiiiIIi", call: noFiles},
	"path_link":               {params: "iiiiiii", call: noFiles},
	"path_open":               {params: "iiiiiIIii", call: noFiles},
	"path_readlink":           {params: "iiiiii", call: noFiles},
	"path_remove_directory":   {params: "iii", call: noFiles},
	"path_rename":             {params: "iiiiii", call: noFiles},
	"path_symlink":            {params: "iiiii", call: noFiles},
	"path_unlink_file":        {params: "iii", call: noFiles},
	"poll_oneoff":             {params: "iiii", call: pollOneoff},
	"proc_exit":               {params: "i", call: procExit, none: true},
	"proc_raise":              {params: "i", call: noSystem},
	"random_get":              {params: "ii", call: randomGet},
	"sched_yield":             {params: "", call: succeed},
	"sock_accept":             {params: "iii", call: noSockets},
	"sock_recv":               {params: "iiiiii", call: noSockets},
	"sock_send":               {params: "iiiii", call: noSockets},
	"sock_shutdown":           {params: "ii", call: noSockets},
}

// Names lists the functions that a guest may import, sorted.
func Names() []string {
	return slices.Sorted(maps.Keys(functions))
}

// Signature returns the parameters and results of a function.
func Signature(name string) (params, results []api.ValueType, ok bool) {
	f, ok := functions[name]
	if !ok {
		return nil, nil, false
	}
	for _, letter := range f.params {
		if letter == 'I' {
			params = append(params, api.ValueTypeI64)
		} else {
			params = append(params, api.ValueTypeI32)
		}
	}
	if !f.none {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results, true
}

// Instantiate defines the named functions as imports in the runtime. It must be called
// once. hostOf finds the guest's host in the context of the call.
//
// # Errors
//
// An error for a name that is not in [Names], or the runtime's error.
func Instantiate(ctx context.Context, r wazero.Runtime, names []string, hostOf func(context.Context) Host) error {
	builder := r.NewHostModuleBuilder(ModuleName)
	for _, name := range names {
		params, results, ok := Signature(name)
		if !ok {
			return fmt.Errorf("%s.%s is not known", ModuleName, name)
		}
		f := functions[name]
		serve := api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			errno := f.call(hostOf(ctx), mod.Memory(), stack)
			if !f.none {
				stack[0] = uint64(errno)
			}
		})
		builder.NewFunctionBuilder().WithGoModuleFunction(serve, params, results).Export(name)
	}
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("instantiate %s (%s): %w", ModuleName, strings.Join(names, ", "), err)
	}
	return nil
}

func succeed(Host, api.Memory, []uint64) uint32 { return errnoSuccess }

func badFile(Host, api.Memory, []uint64) uint32 { return errnoBadf }

func noSystem(Host, api.Memory, []uint64) uint32 { return errnoNosys }

func noFiles(h Host, _ api.Memory, _ []uint64) uint32 {
	h.Lacks(missing.Files)
	return errnoNosys
}

// noDirectory serves C libraries, which look for open directories when they first open a
// file, and then give up without any other call.
func noDirectory(h Host, _ api.Memory, _ []uint64) uint32 {
	h.Lacks(missing.Files)
	return errnoBadf
}

func noSockets(h Host, _ api.Memory, _ []uint64) uint32 {
	h.Lacks(missing.Network)
	return errnoNosys
}

func procExit(h Host, _ api.Memory, args []uint64) uint32 {
	h.Exit(uint32(args[0]))
	return errnoSuccess
}

// noStrings returns the sizes of arguments and environment: zero.
func noStrings(_ Host, mem api.Memory, args []uint64) uint32 {
	if !mem.WriteUint32Le(uint32(args[0]), 0) || !mem.WriteUint32Le(uint32(args[1]), 0) {
		return errnoFault
	}
	return errnoSuccess
}

func randomGet(h Host, mem api.Memory, args []uint64) uint32 {
	view, ok := mem.Read(uint32(args[0]), uint32(args[1]))
	if !ok {
		return errnoFault
	}
	inPieces(view, h.Random)
	return errnoSuccess
}

// maxPiece is the most bytes that a host receives or fills in one call.
const maxPiece = 64 << 10

// inPieces calls f with consecutive pieces of b.
func inPieces(b []byte, f func(piece []byte)) {
	for len(b) > 0 {
		n := min(len(b), maxPiece)
		f(b[:n:n])
		b = b[n:]
	}
}
