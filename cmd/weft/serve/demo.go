package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// demoFolders are the folders of the Go distribution in whose sources the demonstration
// counts words: real text that exists wherever weft is built. The text is long enough for
// some hundred invocations, and short enough that the result appears soon on a busy
// machine.
var demoFolders = []string{"net/http"}

// demo runs the wordcount example over real text through the public API and prints the
// result.
func demo(ctx context.Context, server, key string, w io.Writer) error {
	text, files, err := demoText(ctx)
	if err != nil {
		return fmt.Errorf("collect the demonstration's text: %w", err)
	}
	fmt.Fprintf(w, "counting the words of %d files, the sources of Go's net/http, %.1f MB, in one run ...\n", files, float64(len(text))/1e6)
	c, err := client.New(server, client.Options{Key: key})
	if err != nil {
		return err
	}
	defer c.Close()
	var start bytes.Buffer
	enc := json.NewEncoder(&start)
	enc.SetEscapeHTML(false) // escapes would make program text a tenth longer
	if err := enc.Encode(map[string]string{"text": text}); err != nil {
		return err
	}
	began := time.Now()
	run, err := c.Start(ctx, client.StartRequest{Workflow: "wordcount", Event: start.Bytes(), Wait: true})
	if err != nil {
		return fmt.Errorf("run wordcount: %w", err)
	}
	took := time.Since(began)
	if run.Status != host.StatusCompleted {
		return fmt.Errorf("wordcount %s: %s", run.Status, run.Error)
	}
	return showCounts(w, run.Run, took, server)
}

// demoText reads the project's licence and the Go sources.
func demoText(ctx context.Context) (string, int, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", 0, fmt.Errorf("ask the Go toolchain for GOROOT: %w", err)
	}
	src := filepath.Join(strings.TrimSpace(string(out)), "src")
	var text strings.Builder
	files := 0
	add := func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text.WriteString(strings.ToValidUTF8(string(b), "\uFFFD"))
		files++
		return nil
	}
	if err := add("LICENSE"); err != nil {
		return "", 0, err
	}
	for _, folder := range demoFolders {
		err := filepath.WalkDir(filepath.Join(src, filepath.FromSlash(folder)), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if ext := filepath.Ext(path); ext != ".go" && ext != ".md" {
				return nil
			}
			return add(path)
		})
		if err != nil {
			return "", 0, err
		}
	}
	return text.String(), files, nil
}

// counts is wordcount's result.
type counts struct {
	Lines    int                  `json:"lines"`
	Words    int                  `json:"words"`
	Distinct int                  `json:"distinct"`
	Top      [][2]json.RawMessage `json:"top"`
}

func showCounts(w io.Writer, run host.Run, took time.Duration, server string) error {
	body, err := abi.ToJSON(run.Result.Body)
	if err != nil {
		return err
	}
	var stop struct{ Result counts }
	if err := json.Unmarshal(body, &stop); err != nil {
		return fmt.Errorf("read wordcount's result: %w", err)
	}
	r := stop.Result
	fmt.Fprintf(w, "\n  lines    %d\n  words    %d\n  distinct %d\n  top     ", r.Lines, r.Words, r.Distinct)
	for _, t := range r.Top {
		fmt.Fprintf(w, " %s %s ", t[0], t[1])
	}
	fmt.Fprintf(w, "\n\n  steps    %d\n  elapsed  %s\n  address  %s\n\n", run.Steps, took.Round(time.Millisecond), server)
	fmt.Fprintf(w, "Still serving; a browser finds the console at %[1]s. Try, in another terminal:\n\n"+
		"  curl -X POST %[1]s/workflows/counter/run -d '{\"session\": \"mine\"}'\n"+
		"  curl -N '%[1]s/events/%[2]s?sse=true&after_sequence=-1'\n"+
		"  bin/weft run accumulator 'items:=[\"a\",\"b\"]' --watch --server %[1]s\n\n"+
		"Stop with Ctrl-C.\n", server, run.HandlerID)
	return nil
}
