package runs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// liveView shows a run on a terminal as a few lines that are redrawn: the run, and below
// it a line for each step. Events of the stream become ordinary lines above it.
type liveView struct {
	r     *remote.Conn
	out   io.Writer
	size  func() screen.Terminal // called for each frame: windows change their size
	id    string
	title string
	now   func() time.Time

	progress progress
	began    time.Time
	drawn    time.Time
	lines    int             // of the frame on the screen
	buf      strings.Builder // content of the next write
	frame    int
}

func newLiveView(r *remote.Conn, rec client.Record) *liveView {
	return &liveView{
		r: r, out: r.Errs, size: func() screen.Terminal { return screen.Of(r.Errs) }, id: rec.HandlerID,
		title: screen.Printable(rec.Workflow) + " " + rec.HandlerID, now: time.Now, began: time.Now(),
	}
}

// Show implements Viewer.
func (v *liveView) Show(events []host.StreamEvent) error {
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
	if lines > 0 || v.Patience() == 0 {
		v.draw(string(screen.Spinner[v.frame%len(screen.Spinner)]))
		v.frame++
	}
	return v.flush()
}

// Patience implements Viewer.
func (v *liveView) Patience() time.Duration {
	return max(screen.FrameEvery-v.now().Sub(v.drawn), 0)
}

// Close draws the last frame, which stays.
func (v *liveView) Close() error {
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
		v.buf.WriteString(screen.LineStart)
		fmt.Fprintf(&v.buf, screen.UpLines, v.lines)
		v.buf.WriteString(screen.ClearBelow)
		v.lines = 0
	}
}

// draw replaces the previous frame by a new one, which begins with a mark.
func (v *liveView) draw(mark string) {
	v.erase()
	v.drawn = v.now()
	frame := []string{mark + " " + v.title + "  " + screen.Elapsed(v.drawn.Sub(v.began))}
	on := v.size()
	width := 0
	for _, step := range v.progress.steps {
		width = max(width, screen.Width(screen.Printable(step.name)))
	}
	width = min(width, on.Cols/2) // the counts must stay visible
	for _, step := range v.progress.steps {
		name := screen.Cut(screen.Printable(step.name), width)
		pad := strings.Repeat(" ", width-screen.Width(name))
		frame = append(frame, "  "+name+pad+screen.Gap+step.String())
	}
	if most := on.Rows - 1; len(frame) > most && most > 1 {
		rest := len(frame) - most + 1
		frame = append(frame[:most-1], fmt.Sprintf("  and %d more", rest))
	}
	for _, text := range frame {
		// A line as wide as the terminal could wrap, and occupy two lines.
		text = screen.Cut(text, on.Cols-1)
		if rest, ok := strings.CutPrefix(text, mark+" "); ok {
			text = on.Paint(screen.Cyan, mark) + " " + rest
		}
		v.buf.WriteString(text + "\n")
	}
	v.lines = len(frame)
}

func (v *liveView) flush() error {
	if v.buf.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(v.out, v.buf.String())
	v.buf.Reset()
	return err
}
