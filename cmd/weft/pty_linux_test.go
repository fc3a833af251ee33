package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"unsafe"
)

// onTerminalOf runs a command on a terminal of the given size to its end, and returns its
// output. It enters nothing.
func onTerminalOf(cols, rows int, cmd *exec.Cmd) (screen []byte, err error) {
	keyboard, terminal, err := openTerminal(cols, rows)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	if e := terminal.Close(); err == nil {
		err = e
	}
	if err != nil {
		return nil, errors.Join(err, keyboard.Close())
	}
	screen, readErr := io.ReadAll(keyboard)
	if !errors.Is(readErr, syscall.EIO) { // reading a closed terminal returns this error
		err = readErr
	}
	return screen, errors.Join(cmd.Wait(), err, keyboard.Close())
}

// openTerminal opens a terminal. Text written to keyboard is entered there, and the
// output of programs is read from it.
func openTerminal(cols, rows int) (keyboard, terminal *os.File, err error) {
	fd, err := syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	keyboard = os.NewFile(uintptr(fd), "/dev/ptmx")
	var number uint32
	var locked int32
	size := struct{ rows, cols, width, height uint16 }{rows: uint16(rows), cols: uint16(cols)}
	for _, call := range []struct {
		request uintptr
		arg     unsafe.Pointer
	}{{syscall.TIOCGPTN, unsafe.Pointer(&number)}, {syscall.TIOCSPTLCK, unsafe.Pointer(&locked)}, {syscall.TIOCSWINSZ, unsafe.Pointer(&size)}} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), call.request, uintptr(call.arg)); errno != 0 {
			return nil, nil, errors.Join(errno, keyboard.Close())
		}
	}
	terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, keyboard.Close())
	}
	return keyboard, terminal, nil
}

func TestTerminal(t *testing.T) {
	shown, err := onTerminalOf(70, 20, exec.Command("sh", "-c", "test -t 0 && test -t 2 && stty size"))
	if err != nil || string(shown) != "20 70\r\n" {
		t.Errorf("shown %q, %v", shown, err)
	}
}
