//go:build linux && !race

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// recordedCols is how wide the terminal of the recording is.
const recordedCols = 100

// TestRecording enters the commands of docs/recording/session.txt on a terminal, and
// compares the output with docs/recording/terminal.svg, except times, sizes and similar
// values. With -update it draws the picture again.
func TestRecording(t *testing.T) {
	suite.NotShort(t, "compiles a plugin")
	if _, err := exec.LookPath("tinygo"); err != nil {
		suite.Missing(t, "needs TinyGo: make toolchain")
	}
	folder := filepath.Join(hosttest.Root(), "docs", "recording")
	session, err := os.ReadFile(filepath.Join(folder, "session.txt"))
	if err != nil {
		t.Fatal(err)
	}
	picture := filepath.Join(folder, "terminal.svg")
	lines := record(t, strings.Split(strings.TrimSpace(string(session)), "\n"))
	if *update {
		if err := os.WriteFile(picture, drawing(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shown := drawnText(t, picture)
	have := make([]string, len(lines))
	for i, l := range lines {
		have[i] = l.text()
	}
	if !matches(shown, have) {
		t.Errorf("the commands show\n%s\nand %s shows\n%s\ngo test ./cmd/weft -run Recording -update draws it anew",
			strings.Join(have, "\n"), picture, strings.Join(shown, "\n"))
	}
}

// record enters the commands, and returns all lines on the screen at the end.
func record(t *testing.T, commands []string) (lines []screenLine) {
	t.Helper()
	m := cleanMachine(t, page{path: "recording.md"})
	server := exec.Command(filepath.Join(m.home, "bin", "weft"), "serve", "--data", t.TempDir())
	server.Env = m.env
	serving, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	if _, err := serving.Read(make([]byte, 1)); err != nil { // it has printed that it serves
		t.Fatal(err)
	}
	dir := m.home
	for i, command := range commands {
		if i > 0 {
			lines = append(lines, nil)
		}
		lines = append(lines, screenLine{{"$ ", "dim"}, {command, "bold"}})
		if to, ok := strings.CutPrefix(command, "cd "); ok {
			dir = filepath.Join(dir, to)
			continue
		}
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir, cmd.Env = dir, slices.Concat(m.env, []string{"TERM=xterm-256color"})
		written, err := onTerminalOf(recordedCols, 40, cmd)
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, written)
		}
		s := &emulated{t: t}
		s.write(string(written))
		for _, line := range s.lines {
			if l := line.spans(); !strings.Contains(l.text(), "made smaller") { // not every machine has wasm-opt
				lines = append(lines, l)
			}
		}
	}
	return lines
}

// screenLine is the content of a terminal's line, split by style.
type screenLine []struct{ text, style string }

func (l screenLine) text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// emulated is a terminal that supports the sequences that weft uses: lines, start of
// line, lines up, clearing the rest of the screen, and colours.
type emulated struct {
	t        *testing.T
	lines    []cells
	row, col int
	style    string
}

// cells are the characters of a line, each with its style.
type cells []struct {
	char  rune
	style string
}

// spans joins the characters of the same style.
func (c cells) spans() (line screenLine) {
	for i, one := range c {
		if i == 0 || one.style != c[i-1].style {
			line = append(line, struct{ text, style string }{style: one.style})
		}
		line[len(line)-1].text += string(one.char)
	}
	return line
}

// sequences matches control sequences of a terminal.
var sequences = regexp.MustCompile(`^\x1b\[(\d*)([A-Za-z])`)

// styles are the styles of the picture by the number of a colour.
var styles = map[string]string{"": "", "0": "", screen.Bold: "bold", screen.Red: "red", screen.Green: "green", screen.Yellow: "yellow", screen.Cyan: "cyan"}

func (s *emulated) write(text string) {
	for text != "" {
		if match := sequences.FindStringSubmatch(text); match != nil {
			text = text[len(match[0]):]
			s.control(match[1], match[2])
			continue
		}
		char := []rune(text[:min(len(text), 4)])[0]
		text = text[len(string(char)):]
		switch {
		case char == '\n':
			s.row++
		case char == '\r':
			s.col = 0
		case char < ' ':
			s.t.Fatalf("character %q", char)
		default:
			s.put(char)
		}
	}
}

func (s *emulated) put(char rune) {
	if s.col == recordedCols {
		s.row, s.col = s.row+1, 0
	}
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	line := &s.lines[s.row]
	for len(*line) <= s.col {
		*line = append(*line, struct {
			char  rune
			style string
		}{char: ' '})
	}
	(*line)[s.col].char, (*line)[s.col].style = char, s.style
	s.col++
}

func (s *emulated) control(number, what string) {
	switch what {
	case "m":
		style, ok := styles[number]
		if !ok {
			s.t.Fatalf("colour %q", number)
		}
		s.style = style
	case "A":
		up, err := strconv.Atoi(number)
		if s.row -= up; err != nil || s.row < 0 {
			s.t.Fatalf("up %q lines", number)
		}
	case "J":
		if s.row < len(s.lines) {
			s.lines = s.lines[:s.row+1]
			s.lines[s.row] = s.lines[s.row][:min(s.col, len(s.lines[s.row]))]
			if s.col == 0 {
				s.lines = s.lines[:s.row]
			}
		}
	default:
		s.t.Fatalf("control sequence %q", what)
	}
}

// Measures of the picture, in its units.
const (
	charWidth  = 8.4
	lineHeight = 19
	margin     = 16
)

// drawing returns the picture. Commands and their output appear one after the other,
// once; colours follow the reader's choice of light or dark.
func drawing(lines []screenLine) []byte {
	var b bytes.Buffer
	width, height := int(recordedCols*charWidth)+2*margin, len(lines)*lineHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="A terminal: weft makes, builds, uploads and runs a workflow">
<style>
  svg { --back: #ffffff; --edge: #d0d7de; --text: #1f2328; --dim: #59636e; --red: #cf222e; --green: #116329; --yellow: #7d4e00; --cyan: #0550ae }
  @media (prefers-color-scheme: dark) {
    svg { --back: #0d1117; --edge: #3d444d; --text: #e6edf3; --dim: #9198a1; --red: #ff7b72; --green: #7ee787; --yellow: #e3b341; --cyan: #79c0ff }
  }
  rect { fill: var(--back); stroke: var(--edge) }
  text { fill: var(--text); font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre }
  .bold { font-weight: bold } .dim { fill: var(--dim) } .red { fill: var(--red) } .green { fill: var(--green) } .yellow { fill: var(--yellow) } .cyan { fill: var(--cyan) }
  @media (prefers-reduced-motion: no-preference) { text { animation: come 0.2s both } @keyframes come { from { opacity: 0 } } }
</style>
<rect x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
`, width, height, width, height, width-1, height-1)
	second := 0.0
	for i, line := range lines {
		if len(line) > 0 && line[0].style == "dim" {
			second += 1.2
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" style="animation-delay: %.1fs">`, margin, margin+i*lineHeight+14, second)
		for _, span := range line {
			if span.style == "" {
				b.WriteString(html.EscapeString(span.text))
			} else {
				fmt.Fprintf(&b, `<tspan class="%s">%s</tspan>`, span.style, html.EscapeString(span.text))
			}
		}
		b.WriteString("</text>\n")
		second += 0.1
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// drawnText reads the lines of a picture.
func drawnText(t *testing.T, picture string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	in := xml.NewDecoder(bytes.NewReader(text))
	depth := 0
	for {
		token, err := in.Token()
		if err != nil {
			break
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "text" {
				lines, depth = append(lines, ""), 1
			}
		case xml.EndElement:
			if e.Name.Local == "text" {
				depth = 0
			}
		case xml.CharData:
			if depth > 0 {
				lines[len(lines)-1] += string(e)
			}
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s shows nothing", picture)
	}
	return lines
}
