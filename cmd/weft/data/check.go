// Package data has the commands that work on a data directory or a database without a
// server: they check, back up, restore, compact and move it.
//
// It does not depend on the meaning of the rows of a store.
package data

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/audit"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/sqlite"
)

// exitUnchecked is the exit code of a check that could not be completed.
const exitUnchecked = 2

// errFaulty is returned if a check finds faults.
var errFaulty = errors.New("the check has failed")

// checkOptions are the flags of `weft check`.
type checkOptions struct {
	place
	online bool
	json   bool
}

// NewCheck makes the command 'weft check'.
func NewCheck() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Verify a data directory, a backup or a PostgreSQL database",
		Long: `Verify a data directory or a backup, without changing it. The check reads everything:
the database file must be sound, every row of every journal must have its checksum and
its place, every session must load with the stored modules, and the records of runs,
the streams and the wake-up times of sessions must agree with the journals. The check
first compares the database, its log and the mark beside them, and reports a file that
is missing or too old.

The command refuses a directory that a server uses, unless --online is given. It then
checks the directory as it is at one moment; the server's log grows until the check ends.

With --store the command verifies the content of a PostgreSQL database in the same way.
PostgreSQL verifies its own files: switch its checksums on (initdb --data-checksums).

Each fault names the tenant, the session, the entry, the problem and what to do. A
server can run on a directory with faults: it quarantines the sessions that do not load,
and serves the others.

Exit codes: 0 clean, 1 faults were found, 2 the check could not be made.`,
		Example: `  weft check --data /var/lib/weft
  weft check --online                     # while the server runs
  weft check backup.db                    # a backup
  weft check --json | jq '.faults[] | select(.code == "module_missing") | .session'`,
		Args: cli.Takes("[FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && o.fromEnvironment() {
				o.store = "" // the file was named on the command line
			}
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			err := check(cmd.Context(), o, args, cmd.OutOrStdout(), cmd.ErrOrStderr())
			var coded *cli.ExitError
			if err != nil && !errors.As(err, &coded) {
				err = cli.Exit(exitUnchecked, fmt.Errorf("the check could not be completed: %w", err))
			}
			return err
		},
	}
	f := cmd.Flags()
	o.flags(f, "`DIR` to check", "`URL` of a PostgreSQL database to check, in place of --data")
	f.BoolVar(&o.online, "online", false, "check while a server may run on the directory or database")
	f.BoolVar(&o.json, "json", false, "print one JSON object: the faults, and counts of what was checked")
	return cmd
}

// defaultData is the data directory of commands unless flags name another directory.
const defaultData = "data"

func check(ctx context.Context, o checkOptions, args []string, out, errs io.Writer) (err error) {
	report := newReport(out, o.json)
	if o.store != "" {
		return checkStore(ctx, report, o, args, errs)
	}
	if err := unreadableFile(report, o, args); err != nil {
		return err
	}
	s, err := openToCheck(o, args)
	var gone *sqlite.Missing
	if errors.As(err, &gone) {
		return missingFiles(report, gone)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	noteFiles(errs, s)
	return content(ctx, report, s, errs)
}

// checkStore checks a PostgreSQL database.
func checkStore(ctx context.Context, report *report, o checkOptions, args []string, errs io.Writer) (err error) {
	if len(args) > 0 {
		return cli.Usage("--store and FILE name two places: give one of them")
	}
	s, err := postgres.Open(ctx, o.store, postgres.Options{ReadOnly: true, Exclusive: !o.online})
	if errors.Is(err, postgres.ErrInUse) {
		return fmt.Errorf("%w: stop the server, or check beside it with --online", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return content(ctx, report, s, errs)
}

// content checks the content of a store.
func content(ctx context.Context, report *report, s host.Store, errs io.Writer) error {
	view := screen.NewBar(errs)
	sum, err := wire.Check(ctx, s, func(f audit.Fault) error {
		view.Clear()
		return report.fault(f)
	}, view.Show)
	view.Clear()
	if err := errors.Join(err, report.end(sum, err)); err != nil {
		return err
	}
	if sum.Faults > 0 {
		return cli.Exit(cli.ExitFailed, fmt.Errorf("%w: %s", errFaulty, screen.Counted(uint64(sum.Faults), "fault")))
	}
	return nil
}

// missingFiles reports a directory with missing files. The rest of the directory is not
// checked, because opening it would change it.
func missingFiles(report *report, m *sqlite.Missing) error {
	err := report.fault(audit.Fault{Code: m.Code, What: m.What, Advice: m.Advice})
	if err := errors.Join(err, report.end(audit.Summary{Faults: 1}, nil)); err != nil {
		return err
	}
	return cli.Exit(cli.ExitFailed, fmt.Errorf("%w: 1 fault", errFaulty))
}

// unreadableFile reports a file that the disk cannot read. SQLite would report it as
// damaged, but it may be intact.
func unreadableFile(report *report, o checkOptions, args []string) error {
	if len(args) > 0 || o.online {
		return nil // closing the file would release a server's locks
	}
	err := sqlite.ReadFiles(o.data)
	if err == nil {
		return nil
	}
	err = errors.Join(report.fault(audit.Fault{Code: audit.Unreadable, What: err.Error(),
		Advice: "the disk or its connection does not work: repair it first; nothing is known to be damaged"}),
		report.end(audit.Summary{Faults: 1}, nil))
	return errors.Join(err, cli.Exit(cli.ExitFailed, fmt.Errorf("%w: 1 fault", errFaulty)))
}

// noteFiles reports what is worth knowing but is not a fault.
func noteFiles(errs io.Writer, s *sqlite.Store) {
	if has, newest := s.Schemas(); has < newest {
		fmt.Fprintf(errs, "schema %d, this version has %d: the next start of the server upgrades the database\n", has, newest)
	}
	if frames, commits, torn := s.Log(); frames+torn > 0 {
		fmt.Fprintf(errs, "log: %s in %s are whole", screen.Counted(commits, "commit"), screen.Counted(frames, "frame"))
		if torn > 0 {
			fmt.Fprintf(errs, "; %s behind were not written to the end, and do not count", screen.Counted(torn, "frame"))
		}
		fmt.Fprintln(errs)
	}
}

func openToCheck(o checkOptions, args []string) (*sqlite.Store, error) {
	switch {
	case len(args) > 0 && o.online:
		return nil, cli.Usage("--online needs a data directory, not a file")
	case len(args) > 0:
		return sqlite.OpenFile(args[0])
	case o.online:
		return sqlite.OpenShared(o.data)
	}
	s, err := sqlite.OpenOffline(o.data)
	if errors.Is(err, sqlite.ErrInUse) {
		return nil, fmt.Errorf("%w: stop it, or check beside it with --online", err)
	}
	return s, err
}

// report prints faults as they are found.
type report struct {
	out    io.Writer
	json   bool
	faults int
}

func newReport(out io.Writer, asJSON bool) *report { return &report{out: out, json: asJSON} }

// fault prints a fault.
func (r *report) fault(f audit.Fault) error {
	r.faults++
	if !r.json {
		_, err := io.WriteString(r.out, faultText(f))
		return err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	before := ",\n  "
	if r.faults == 1 {
		before = "{\"faults\": [\n  "
	}
	_, err = io.WriteString(r.out, before+string(text))
	return err
}

// faultText is a fault for people.
func faultText(f audit.Fault) string {
	var b strings.Builder
	b.WriteString(f.Code)
	switch {
	case f.Session != "":
		fmt.Fprintf(&b, ": session %s of tenant %s", screen.Printable(f.Session), screen.Printable(f.Tenant))
	case f.Tenant != "":
		fmt.Fprintf(&b, ": tenant %s", screen.Printable(f.Tenant))
	}
	if f.Position > 0 {
		fmt.Fprintf(&b, ", entry %d", f.Position)
	}
	fmt.Fprintf(&b, "\n  what: %s\n  do:   %s\n", screen.Printable(f.What), screen.Printable(f.Advice))
	return b.String()
}

// end prints what was checked. failed says why the check did not complete, or is nil.
func (r *report) end(sum audit.Summary, failed error) error {
	if r.json {
		return r.endJSON(sum, failed)
	}
	if failed != nil {
		return nil // the caller reports it
	}
	verdict := "no faults"
	if sum.Faults > 0 {
		verdict = screen.Counted(uint64(sum.Faults), "fault")
	}
	_, err := fmt.Fprintf(r.out, "%s: %s with %s, %s, %s, %s\n", verdict,
		screen.Counted(uint64(sum.Sessions), "session"), entries(sum.Entries),
		screen.Counted(uint64(sum.Runs), "run"), screen.Counted(sum.Events, "event"), screen.Counted(uint64(sum.Modules), "module"))
	return err
}

// entries counts entries of journals.
func entries(n uint64) string {
	return strings.Replace(screen.Counted(n, "entry"), "entrys", "entries", 1)
}

func (r *report) endJSON(sum audit.Summary, failed error) error {
	var b bytes.Buffer
	if r.faults == 0 {
		b.WriteString(`{"faults": [`)
	} else {
		b.WriteByte('\n')
	}
	b.WriteString("],\n ")
	if failed != nil {
		fmt.Fprintf(&b, "\"error\": %s,\n ", screen.Quote(failed.Error()))
	}
	text, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	fmt.Fprintf(&b, "\"clean\": %t, \"checked\": %s}\n", failed == nil && sum.Faults == 0, text)
	_, err = r.out.Write(b.Bytes())
	return err
}
