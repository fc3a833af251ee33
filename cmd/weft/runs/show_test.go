package runs

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTableFitsTheTerminal(t *testing.T) {
	records := []client.Record{
		{Run: host.Run{
			HandlerID: "h1", Workflow: "wordcount", Status: host.StatusFailed, Error: strings.Repeat("long ", 40),
			Started: now.Add(-time.Hour).UnixNano(), Completed: now.Add(-time.Hour + 1500*time.Millisecond).UnixNano(),
		}},
		{Run: host.Run{
			HandlerID: "a-handler-of-some-length", Workflow: "x", Status: host.StatusRunning,
			Blocked: &host.Blocked{Code: "host_crash", Message: "three\ncrashes\x1b[2J"}, Started: now.Add(-time.Minute).UnixNano(),
		}},
	}
	table := runTable(records, now)
	for _, width := range []int{0, 200, 100, 82} {
		text := table.Render(screen.Terminal{Cols: width})
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && n > width {
				t.Errorf("width %d: a line of %d: %q", width, n, line)
			}
		}
		if !strings.Contains(text, "a-handler-of-some-length") {
			t.Errorf("width %d: an id is cut:\n%s", width, text)
		}
		if strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 3 {
			t.Errorf("width %d: what others wrote reaches the terminal: %q", width, text)
		}
	}
	want := `HANDLER                   WORKFLOW  STATUS             STARTED  DURATION  ERROR
h1                        wordcou…  failed             1h ago      1.50s  long lo…
a-handler-of-some-length  x         running (blocked)  1m ago      1m00s  three\n…
`
	if got := table.Render(screen.Terminal{Cols: 40}); got != want {
		t.Errorf("too narrow:\n%s\nwant:\n%s", got, want)
	}
}

func TestSince(t *testing.T) {
	for text, want := range map[string]time.Time{
		"": {}, "90m": now.Add(-90 * time.Minute), "7d": now.AddDate(0, 0, -7), "2026-11-20T00:00:00Z": time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC),
	} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "-3d", "d", "99999999d", "5"} {
		if _, err := parseSince(text, now); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestRecordShowsWhatTheRunWaitsFor(t *testing.T) {
	rec := client.Record{
		Run: host.Run{HandlerID: "h", Status: host.StatusRunning, Started: now.UnixNano(), WaitingFor: []host.Waiting{
			{Step: "ask", Type: "HumanResponseEvent", WaiterID: "manager", Requirements: `{"role":"boss"}`}, {Step: "run", Child: "kid"}, {Step: "ask", Resource: "crm"}, {Step: "rest", Until: now.UnixNano()}, {Reason: host.WaitsForTurn},
			{Step: "try", Reason: host.WaitsForRetry, Until: now.UnixNano()}}, Kept: []host.Kept{{Type: "Note"}, {Type: "Note", Step: "ask"}}},
	}
	text := recordSheet(rec, now).Render("")
	for _, want := range []string{"waits for  HumanResponseEvent in step ask, with {\"role\":\"boss\"}, waiter manager\n", "keeps      Note\n", "keeps      Note for step ask\n", "its child kid in step run\n", "the resource crm in step ask\n", " in step rest\n", "the runs before it in its session\n", "its next attempt at "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// A failed run is shown with the step, the attempt and what to do; a run that timed out
// with the steps that were running.
func TestRecordShowsWhereTheRunFailed(t *testing.T) {
	rec := client.Record{Remedy: "Do less.", Run: host.Run{
		HandlerID: "h", Status: host.StatusFailed, Error: "too much", ErrorCode: "fuel_exhausted", ErrorStep: "charge", ErrorAttempt: 3}}
	text := recordSheet(rec, now).Render("")
	for _, want := range []string{"code       fuel_exhausted\n", "failed in  step charge, attempt 3\n", "error      too much\n", "do         Do less.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if got, want := ending(rec).Error(), "h failed in step charge, attempt 3: too much\n  Do less."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	rec.ErrorStep, rec.ErrorAttempt = "a, b", 0
	if got := failedIn(rec); got != "step a, b" {
		t.Errorf("%q", got)
	}
}

// A blocked run is shown with the reason, and what to do.
func TestRecordShowsWhatToDoAboutABlockedRun(t *testing.T) {
	text := recordSheet(client.Record{Remedy: "Repair it.", Run: host.Run{
		HandlerID: "h", Status: host.StatusRunning, Blocked: &host.Blocked{Code: "host_error", Message: "no module"}}}, now).Render("")
	for _, want := range []string{"blocked   host_error: no module\n", "do        Repair it.\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is not in this once:\n%s", want, text)
		}
	}
}

// Colours change only the look: each status of a run has its own colour, and text from
// users cannot add colours.
func TestColoursOfTables(t *testing.T) {
	records := []client.Record{
		{Run: host.Run{HandlerID: "h1", Workflow: "w", Status: host.StatusFailed, Error: "\x1b[32mno"}},
		{Run: host.Run{HandlerID: "h2", Workflow: "completed", Status: host.StatusRunning}},
		{Run: host.Run{HandlerID: "h3", Workflow: "w", Status: host.StatusRunning, Paused: true}},
		{Run: host.Run{HandlerID: "h4", Workflow: "w", Status: host.StatusCompleted}},
		{Run: host.Run{HandlerID: "h5", Workflow: "w", Status: host.StatusCancelled}},
	}
	table := runTable(records, now)
	colored, plain := table.Render(screen.Terminal{Cols: 100, Color: true}), table.Render(screen.Terminal{Cols: 100})
	if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(colored, ""); got != plain {
		t.Errorf("without its colours it is\n%s\nand not\n%s", got, plain)
	}
	for _, want := range []string{"\x1b[31mfailed\x1b[0m", "\x1b[36mrunning\x1b[0m", "\x1b[33mrunning (paused)\x1b[0m", "\x1b[32mcompleted\x1b[0m", "\x1b[33mcancelled\x1b[0m"} {
		if n := strings.Count(colored, want); n != 1 {
			t.Errorf("%q is there %d times in\n%q", want, n, colored)
		}
	}
}
