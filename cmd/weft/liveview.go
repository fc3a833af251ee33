package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// frameEvery is how often the live view is drawn anew.
const frameEvery = 100 * time.Millisecond

// Control sequences of terminals (ECMA-48).
const (
	toLineStart = "\r"
	upLines     = "\x1b[%dA" // by that many
	clearBelow  = "\x1b[J"
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// liveView shows a run on a terminal as a few lines that are drawn anew: the
// run, and below it a line for each step. Events of the stream become ordinary
// lines above it.
type liveView struct {
	r     *remote
	out   io.Writer
	size  func() terminal // asked for each frame: windows change
	id    string
	title string
	now   func() time.Time

	progress progress
	began    time.Time
	drawn    time.Time
	lines    int             // of the frame on the screen
	buf      strings.Builder // what the next write sends
	frame    int
}

func newLiveView(r *remote, rec client.Record) *liveView {
	return &liveView{
		r: r, out: r.errs, size: func() terminal { return terminalOf(r.errs) }, id: rec.HandlerID,
		title: printable(rec.Workflow) + " " + rec.HandlerID, now: time.Now, began: time.Now(),
	}
}

func (v *liveView) show(events []host.StreamEvent) error {
	lines := 0
	for i := range events {
		if step, _ := v.progress.apply(&events[i]); step != nil || events[i].Internal || events[i].Terminal {
			continue
		}
		if lines++; lines == 1 {
			v.erase()
		}
		if err := showEvent(v.r, v.id, &events[i], v.line); err != nil {
			return err
		}
	}
	if lines > 0 || v.patience() == 0 {
		v.draw(string(spinner[v.frame%len(spinner)]))
		v.frame++
	}
	return v.flush()
}

func (v *liveView) patience() time.Duration {
	return max(frameEvery-v.now().Sub(v.drawn), 0)
}

// close draws the last frame, which stays.
func (v *liveView) close() error {
	v.draw(" ")
	return v.flush()
}

// line adds a line above the frame.
func (v *liveView) line(format string, args ...any) {
	fmt.Fprintf(&v.buf, format+"\n", args...)
}

// erase takes the frame off the screen.
func (v *liveView) erase() {
	if v.lines > 0 {
		v.buf.WriteString(toLineStart)
		fmt.Fprintf(&v.buf, upLines, v.lines)
		v.buf.WriteString(clearBelow)
		v.lines = 0
	}
}

// draw puts the frame, led by a mark, in the place of the one before.
func (v *liveView) draw(mark string) {
	v.erase()
	v.drawn = v.now()
	frame := []string{mark + " " + v.title + "  " + elapsed(v.drawn.Sub(v.began))}
	screen := v.size()
	width := 0
	for _, step := range v.progress.steps {
		width = max(width, utf8.RuneCountInString(printable(step.name)))
	}
	width = min(width, screen.cols/2) // the counts are to be seen
	for _, step := range v.progress.steps {
		name := cut(printable(step.name), width)
		pad := strings.Repeat(" ", width-utf8.RuneCountInString(name))
		frame = append(frame, "  "+name+pad+gap+step.String())
	}
	if most := screen.rows - 1; len(frame) > most && most > 1 {
		rest := len(frame) - most + 1
		frame = append(frame[:most-1], fmt.Sprintf("  and %d more", rest))
	}
	for _, text := range frame {
		// A line as wide as the terminal could wrap, and count as two.
		text = cut(text, screen.cols-1)
		if rest, ok := strings.CutPrefix(text, mark+" "); ok {
			text = screen.paint(cyan, mark) + " " + rest
		}
		v.buf.WriteString(text + "\n")
	}
	v.lines = len(frame)
}

// elapsed shows a time that goes on, in steps that one can follow.
func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return span(d)
}

func (v *liveView) flush() error {
	if v.buf.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(v.out, v.buf.String())
	v.buf.Reset()
	return err
}
