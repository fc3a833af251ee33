package hosttest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hosttest"
)

// These tests play the histories of the engine (testdata/engine) through a whole host.
// Puppets make their calls, clients make their posts, and the clock drives their timers.
// Package engine's tests define the language.

// unfit are the histories that a host cannot be driven to from outside, with the reason,
// in addition to those that contain a verb of unfitVerbs.
var unfit = map[string]string{
	"handler-busy":      "a host makes the ids of its runs",
	"retry-random":      "a host makes the seeds of its runs",
	"outside-refused":   "a host has one limit for the state",
	"suspensions-limit": "a host ends an attempt that breaks the limit",

	"timeout-of-work-in-turn": "a host's default timeout counts work, and this one is set",
}

// unfitVerbs are the ticks that come from the host itself.
var unfitVerbs = map[string]string{
	"block":  "a run is blocked by a fault of the host's",
	"shift":  "time is lost between two hosts",
	"extend": "a host moves a timeout when a run had no core",
	"rerun":  "a host draws the id and the seed of the run that goes on", "migrate": "there are several versions",
	"begin": "an edit is begun and committed by one attempt, which calls nothing between that has an effect",

	"in": "it speaks of several sessions", "carry": "it speaks of several sessions",
	"run":  "the ids of children follow from the run's seed, which a host draws",
	"turn": "a host gives runs their turns by itself",
	"snap": "an atomic step has no effects that a line could show before its end", "try": "an atomic step has no effects that a line could show before its end",
	"ask": "resources are what a host has", "answer": "resources are what a host has",
}

// cleansUp matches a step that catches the end of its run. A client that cancels such a
// run waits for the effects of the following lines.
var cleansUp = regexp.MustCompile(`"catches": \[[^\]]*"(cancelled|timeout)"`)

// timesOut matches a timeout of the run or of a step. A host extends these by the time in
// which nobody had a core, including the time of a restart.
var timesOut = regexp.MustCompile(`"timeout": [1-9]`)

// waitID matches the name of a wait.
var waitID = regexp.MustCompile(`\bid=\S+`)

// scene is one line of a history.
type scene struct {
	line, verb string
	at         time.Duration
	timed      bool
	rest       string // after the verb
	attempt    attemptID
	entries    int // entries that it makes
	outcome    string
	repeats    bool   // a call that was suspended is made again
	n          string // the number that the line gives to the call
	nth        int    // the number of the call in its attempt
}

// story is a history in playable form.
type story struct {
	name, manifest, dump string
	scenes               []scene
	stream               []string // expected publications, in order
	told                 map[attemptID][]abi.Raw
	waited               map[string]bool // by attempt and name
	limits               host.Limits
	unfit                string
}

func readStory(t *testing.T, path string) *story {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	st := &story{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), told: map[attemptID][]abi.Raw{}, waited: map[string]bool{}}
	st.unfit = unfit[st.name]
	parts := strings.Split("\n"+string(text), "\n-- ")
	for _, part := range parts[1:] {
		name, body, _ := strings.Cut(part, " --\n")
		switch name {
		case "manifest.json":
			if st.manifest = body; cleansUp.MatchString(body) {
				st.unfit = "whoever cancels a run waits until it is cleaned up after"
			}
		case "want":
			st.readWant(t, body)
		case "dump":
			st.dump = body
		case "ticks":
		default:
			st.unfit = "there are several versions"
		}
	}
	return st
}

func (st *story) readWant(t *testing.T, want string) {
	t.Helper()
	for _, block := range strings.Split("\n"+want, "\n> ")[1:] {
		lines := strings.Split(block, "\n")
		sc := scene{line: lines[0]}
		for _, line := range lines[1:] {
			word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch {
			case word == "entry":
				sc.entries++
			case word == "suspended" || word == "error:" || word == "client" || word == "guest":
				sc.outcome = word
			case strings.HasPrefix(word, "h"):
				st.stream = append(st.stream, line)
			}
		}
		st.scenes = append(st.scenes, sc)
	}
	timeout := ""
	before := map[attemptID]*scene{}
	for i := range st.scenes {
		sc := &st.scenes[i]
		sc.read(t)
		if why := unfitVerbs[sc.verb]; why != "" {
			st.unfit = why
			return
		}
		if i > 0 && sc.at < st.scenes[i-1].at && sc.timed {
			st.unfit = "the clock of the host goes back by itself"
		}
		if !sc.timed && i > 0 {
			sc.at = st.scenes[i-1].at
		}
		if sc.verb == "start" {
			st.readStart(sc, &timeout)
		}
		if sc.attempt.invocation != 0 && sc.outcome != "error:" {
			st.tell(sc, before)
		}
	}
	if timeout == "" {
		timeout = "0s"
	}
	d, err := time.ParseDuration(timeout)
	if err != nil {
		t.Fatal(err)
	}
	st.manifest = strings.Replace(st.manifest, "{", fmt.Sprintf(`{"timeout": %d, `, d), 1)
}

// read parses a line.
func (sc *scene) read(t *testing.T) {
	t.Helper()
	word, rest, _ := strings.Cut(sc.line, " ")
	if at, timed := strings.CutPrefix(word, "@"); timed {
		d, err := time.ParseDuration(at)
		if err != nil {
			t.Fatal(err)
		}
		sc.at, sc.timed = d, true
		word, rest, _ = strings.Cut(rest, " ")
	}
	sc.verb, sc.rest = word, rest
	switch word {
	case "start", "post", "timer", "cancel", "pause", "resume", "outside":
		return
	}
	if unfitVerbs[word] != "" {
		return
	}
	id, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", sc.line, err)
	}
	sc.attempt, sc.rest = attemptID{n, 1}, rest
	if attempt := sc.option("attempt"); attempt != "" {
		sc.attempt.attempt, _ = strconv.ParseUint(attempt, 10, 64)
	}
	sc.n = sc.option("n")
	sc.option("fuel")
}

// option removes KEY=VALUE from the line and returns VALUE.
func (sc *scene) option(key string) string {
	words := strings.Fields(sc.rest)
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, key+"="); ok {
			sc.rest = strings.Join(slices.Delete(words, i, i+1), " ")
			return value
		}
	}
	return ""
}

// readStart reads the host's settings for all runs.
func (st *story) readStart(sc *scene, timeout *string) {
	limits := host.Limits{}
	for key, limit := range map[string]*int{
		"events": &limits.RunEvents, "stream": &limits.StreamBytes, "state": &limits.StateBytes, "inbox": &limits.InboxEvents, "suspensions": &limits.Suspensions,
		"queued": &limits.QueuedStarts, "depth": &limits.ChildDepth, "record": &limits.RecordBytes,
	} {
		*limit, _ = strconv.Atoi(sc.option(key))
	}
	d := sc.option("timeout")
	if d == "" {
		d = "0s"
	}
	switch {
	case *timeout == "":
		*timeout, st.limits = d, limits
	case *timeout != d || st.limits != limits:
		st.unfit = "its runs have different limits"
	}
	if sc.option("busy") != "" {
		st.unfit = unfitVerbs["turn"]
	}
	if sc.option("version") != "" {
		st.unfit = "there are several versions"
	}
}

// tell adds what the line tells a puppet to do.
func (st *story) tell(sc *scene, before map[attemptID]*scene) {
	last := before[sc.attempt]
	if last != nil && last.outcome == "suspended" && last.verb == sc.verb && last.rest == sc.rest && last.n == sc.n {
		sc.repeats, sc.nth = true, last.nth
		return
	}
	if id := fmt.Sprint(sc.attempt, waitID.FindString(sc.rest)); sc.verb == "wait" {
		if st.waited[id] {
			st.unfit = "a host counts the waits of one name"
			return
		}
		st.waited[id] = true
	}
	op, err := sc.operation()
	if err != nil {
		st.unfit = "it cannot be said in the ABI: " + err.Error()
		return
	}
	before[sc.attempt] = sc
	st.told[sc.attempt] = append(st.told[sc.attempt], op)
	sc.nth = len(st.told[sc.attempt])
}

// TestHistoriesThroughAHost plays the histories on a stage. The publications, their order
// and the journal equal the history's.
func TestHistoriesThroughAHost(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(hosttest.Root(), "testdata", "engine", "*.txtar"))
	if err != nil || len(files) < 150 {
		t.Fatalf("%d histories, %v", len(files), err)
	}
	why := map[string][]string{}
	for _, path := range files {
		st := readStory(t, path)
		if st.unfit != "" {
			why[st.unfit] = append(why[st.unfit], st.name)
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			st.play(t, func(int) (again, crash bool) { return false, false })
		})
	}
	for reason, names := range why {
		t.Logf("%d histories are not played, as %s: %s", len(names), reason, strings.Join(names, ", "))
	}
}

// TestStoriesThroughAHost plays the random histories in the folder WEFT_STORIES, each
// without and with restarts; see TestWriteStories of package engine.
func TestStoriesThroughAHost(t *testing.T) {
	folder := os.Getenv("WEFT_STORIES")
	if folder == "" {
		t.Skip("WEFT_STORIES names no folder")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d stories, %v", len(files), err)
	}
	for i, path := range files {
		st := readStory(t, path)
		if st.unfit != "" {
			t.Logf("%s is not played, as %s", st.name, st.unfit)
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			st.play(t, func(int) (again, crash bool) { return false, false })
			st.play(t, atRandom(uint64(i)))
		})
	}
}

// atRandom restarts the host at random, once by a crash.
func atRandom(seed uint64) func(int) (again, crash bool) {
	rng := rand.New(rand.NewPCG(seed, 0))
	crashes := 1
	return func(int) (again, crash bool) {
		if again = rng.IntN(4) == 0; again && crashes > 0 && rng.IntN(2) == 0 {
			crashes--
			crash = true
		}
		return again, crash
	}
}

// TestHistoriesOverRestarts plays the histories with restarts of the host at random
// lines, of which one may be a crash.
func TestHistoriesOverRestarts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(hosttest.Root(), "testdata", "engine", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("WEFT_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEFT_SEED=%d", seed)
	for i, path := range files {
		st := readStory(t, path)
		if st.unfit != "" || timesOut.MatchString(st.manifest) {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			st.play(t, atRandom(seed+uint64(i)))
		})
	}
}

// play plays the history; restart says after which lines the host restarts.
func (st *story) play(t *testing.T, restart func(line int) (again, crash bool)) {
	s := newStage(t, st.limits)
	s.told = st.told
	if _, _, err := s.host.Plugins.Put(t.Context(), host.DefaultTenant, "puppet", puppet(t, st.manifest)); err != nil {
		t.Fatal(err)
	}
	p := &playing{t: t, s: s, st: st, runs: map[string]host.Run{}}
	restarts := 0
	for i := range st.scenes {
		sc := &st.scenes[i]
		p.seq += uint64(sc.entries)
		if t.Failed() {
			return
		}
		p.scene(sc)
		if again, crash := restart(i); again {
			s.restart(crash)
			restarts++
		}
	}
	t.Logf("%d lines, %d restarts", len(st.scenes), restarts)
	s.until("the end", func() bool { return s.store.settled() >= p.seq })
	s.mu.Lock()
	stream := slices.Clone(s.store.stream)
	s.mu.Unlock()
	sameLines(t, "what is published", stream, st.stream)
	p.compareDump()
}

// playing is a history being played.
type playing struct {
	t    *testing.T
	s    *stage
	st   *story
	seq  uint64
	runs map[string]host.Run // by the history's names
}

func (p *playing) scene(sc *scene) {
	s := p.s
	s.mu.Lock()
	if sc.timed {
		s.now = time.Unix(0, int64(sc.at))
	}
	s.mu.Unlock()
	switch {
	case sc.attempt.invocation == 0:
		p.outside(*sc)
	case sc.outcome == "error:":
		return // the attempt does not exist any more
	case sc.verb == "finish":
		s.mu.Lock()
		g := s.guest(sc.attempt)
		g.calls, g.finished = sc.nth, true
		s.changed.Broadcast()
		s.mu.Unlock()
	default:
		s.mu.Lock()
		g := s.guest(sc.attempt)
		g.calls = max(g.calls, sc.nth)
		s.changed.Broadcast()
		s.mu.Unlock()
		s.until(sc.line, func() bool {
			if sc.outcome == "suspended" {
				return g.waits >= sc.nth
			}
			return g.made >= sc.nth
		})
	}
	s.until(fmt.Sprintf("entry %d of %s", p.seq, sc.line), func() bool { return s.store.settled() >= p.seq })
}

// outside does what clients do, and advances the clock.
func (p *playing) outside(sc scene) {
	ctx, runs := p.t.Context(), p.s.host.Runs
	words := strings.Fields(sc.rest)
	var err error
	switch sc.verb {
	case "timer":
		runs.Nudge()
	case "start":
		req := host.StartRequest{Tenant: host.DefaultTenant, Workflow: p.workflow(), HandlerID: words[1], SessionID: "s"}
		req.Event, _, err = readEvent(strings.Join(words[2:], " "))
		if err == nil && req.Event.Type == "" {
			req.Event.Type = abi.TypeStart
		}
		var r host.Run
		if r, err = runs.Start(ctx, req); err == nil {
			p.runs[words[0]] = r
		}
	case "post":
		step := sc.option("step")
		_, rest, _ := strings.Cut(sc.rest, " ")
		var ev abi.Event
		if ev, _, err = readEvent(rest); err == nil {
			err = runs.Send(ctx, host.DefaultTenant, p.runs[words[0]].HandlerID, ev, step)
		}
	case "outside":
		err = p.edit(&sc)
	case "cancel":
		_, err = runs.Cancel(ctx, host.DefaultTenant, p.runs[words[0]].HandlerID, false)
	case "pause":
		_, err = runs.Pause(ctx, host.DefaultTenant, p.runs[words[0]].HandlerID)
	case "resume":
		_, err = runs.Resume(ctx, host.DefaultTenant, p.runs[words[0]].HandlerID)
	}
	if refused := sc.outcome == "client" || sc.outcome == "error:"; refused != (err != nil) {
		p.t.Errorf("%s: %v", sc.line, err)
	}
}

func (p *playing) workflow() string {
	var m struct{ Workflow string }
	if err := json.Unmarshal([]byte(p.st.manifest), &m); err != nil {
		p.t.Fatal(err)
	}
	return m.Workflow
}

// settled returns the number of entries that the history counts.
func (t *tapStore) settled() uint64 { return t.last - uint64(t.shifts) }

// incomparable matches the parts of a dump that a history invents.
var incomparable = regexp.MustCompile(`fuel=\d+|seed=[0-9a-f]+|version=\S+|suspended at call \d+|slept=\d+|late=\d+`)

// compareDump folds the journal, and compares the session with the history's.
func (p *playing) compareDump() {
	p.t.Helper()
	raw, err := abi.FromJSON([]byte(p.st.manifest))
	if err != nil {
		p.t.Fatal(err)
	}
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		p.t.Fatal(err)
	}
	g, _ := engine.Compile(&m)
	folded := engine.New(host.SessionKey{Tenant: "t", Session: "s"}, func(string) (*engine.Graph, error) { return g, nil })
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	for _, e := range p.s.store.entries(p.t) {
		if _, err := folded.Fold(e); err != nil {
			p.t.Fatal(err)
		}
	}
	got, want := folded.Dump(), p.st.dump
	for name, r := range p.runs {
		got = strings.ReplaceAll(got, r.RunID, name)
	}
	if n := p.s.store.shifts; n > 0 { // the first line counts the entries
		got = strings.Replace(got, fmt.Sprintf("seq=%d", folded.Seq()), fmt.Sprintf("seq=%d", folded.Seq()-uint64(n)), 1)
	}
	got, want = incomparable.ReplaceAllString(got, "-"), incomparable.ReplaceAllString(want, "-")
	// Runs are ordered by their ids, which the host chooses.
	sameLines(p.t, "the session", slices.Sorted(strings.SplitSeq(got, "\n")), slices.Sorted(strings.SplitSeq(want, "\n")))
}

func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(nothing more)"
		}
		if line(got) != line(want) {
			t.Fatalf("%s, line %d:\n got %s\nwant %s", what, i+1, line(got), line(want))
		}
	}
}
