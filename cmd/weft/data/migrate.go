package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/audit"
	storecopy "github.com/weftrun/weft/host/store/copy"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite"
)

// NewMigrateStore makes the command 'weft migrate-store'.
func NewMigrateStore() *cobra.Command {
	var o backupOptions
	cmd := &cobra.Command{
		Use:   "migrate-store FROM TO",
		Short: "Move everything between SQLite and PostgreSQL",
		Long: `Copy everything from one store into another. FROM and TO are each a data directory, or
the address of a PostgreSQL database (postgres://...). Give the password in PGPASSWORD or
in a file named by PGPASSFILE: other users of a machine can see a command line.

No server may run on FROM or TO. TO must be empty. The command copies everything, reads
the copy again and compares it with FROM, and verifies the copy as 'weft check' does. Only
then can a server use TO. FROM stays as it is: delete it, so that no server runs on both.

If the command is interrupted, the same command continues the copy. If a server has used
FROM meanwhile, the copy begins anew.`,
		Example: `  weft migrate-store /var/lib/weft postgres://weft@db.internal/weft
  weft migrate-store postgres://weft@db.internal/weft /var/lib/weft-new`,
		Args: cli.Takes("FROM", "TO"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return migrateStore(cmd.Context(), o, parsePlace(args[0]), parsePlace(args[1]), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().BoolVar(&o.noVerify, "no-verify", false, "do not compare and check the copy")
	return cmd
}

// parsePlace returns the place that an argument names.
func parsePlace(arg string) place {
	if isURL(arg) {
		return place{store: arg}
	}
	return place{data: arg}
}

// identified is a store that knows its identity.
type identified interface {
	host.Store
	Identity(ctx context.Context) (store, content string, err error)
}

// openExclusive opens a store that exists, and keeps servers away from it.
func (p *place) openExclusive(ctx context.Context) (identified, error) {
	// A nil pointer in an interface is not nil, so errors return nil themselves.
	if p.store != "" {
		s, err := postgres.Open(ctx, p.store, postgres.Options{Exclusive: true})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s, err := sqlite.OpenExisting(p.data)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// job is a copy that a command makes.
type job struct {
	backupOptions
	view *screen.Bar
	errs io.Writer
	sum  *audit.Summary // nil: the copy is not verified
}

func newJob(o backupOptions, errs io.Writer) *job {
	j := &job{backupOptions: o, view: screen.NewBar(errs), errs: errs}
	if !o.noVerify {
		j.sum = &audit.Summary{}
	}
	return j
}

// run copies the rows of a store.
func (j *job) run(ctx context.Context, from record.Source, to storecopy.Target, family, identity string) (storecopy.Summary, error) {
	defer j.view.Clear()
	return storecopy.Run(ctx, storecopy.Config{
		From: from, To: to, Family: family, Identity: identity, Again: j.sum != nil, Progress: j.view.Show,
	})
}

// into copies the rows of a store into a place where a later call can continue, and ends
// the copy.
func (j *job) into(ctx context.Context, from identified, to place, claim bool) (sum storecopy.Summary, err error) {
	family, identity, err := from.Identity(ctx)
	if err != nil {
		return sum, err
	}
	fill := func(target storecopy.Target) (err error) {
		continued, err := storecopy.Interrupted(ctx, target, identity)
		if err != nil {
			return err
		}
		if claim && !continued { // from now on, a use of the store by others is noticed
			if _, err := from.Claim(ctx); err != nil {
				return err
			}
			if family, identity, err = from.Identity(ctx); err != nil {
				return err
			}
		}
		rows, err := wire.Inspect(ctx, from)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		sum, err = j.run(ctx, rows, target, family, identity)
		return err
	}
	if to.store != "" {
		return sum, j.intoDatabase(ctx, to.store, fill)
	}
	return sum, j.intoDirectory(ctx, to.data, fill)
}

func (j *job) intoDatabase(ctx context.Context, url string, fill func(storecopy.Target) error) (err error) {
	l, err := postgres.Load(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := fill(l); err != nil {
		return err
	}
	if err := j.check(ctx, func(found func(audit.Fault) error, progress func(string, int, int)) (audit.Summary, error) {
		return wire.Check(ctx, l.Store, found, progress)
	}); err != nil {
		return err
	}
	return l.Publish(ctx)
}

func (j *job) intoDirectory(ctx context.Context, dir string, fill func(storecopy.Target) error) (err error) {
	l, err := sqlite.LoadDirectory(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if err := fill(l); err != nil {
		return err
	}
	return l.Publish(ctx, j.checkFile(ctx))
}

// check verifies a copy unless the command does not want that.
func (j *job) check(ctx context.Context, check func(found func(audit.Fault) error, progress func(string, int, int)) (audit.Summary, error)) error {
	if j.sum == nil {
		return nil
	}
	return verify(ctx, j.view, j.errs, j.sum, check)
}

// checkFile returns a function that verifies a copy in a file.
func (j *job) checkFile(ctx context.Context) func(string) error {
	return func(file string) error {
		return j.check(ctx, func(found func(audit.Fault) error, progress func(string, int, int)) (audit.Summary, error) {
			return wire.CheckFile(ctx, file, found, progress)
		})
	}
}

func migrateStore(ctx context.Context, o backupOptions, from, to place, out, errs io.Writer) (err error) {
	begun := time.Now()
	s, err := from.openExclusive(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	j := newJob(o, errs)
	copied, err := j.into(ctx, s, to, true)
	if err != nil {
		return fmt.Errorf("copying %s to %s: %w", from.name(), to.name(), err)
	}
	if _, err := fmt.Fprintf(out, "copied %s in %s", screen.Counted(uint64(copied.Rows), "row"), time.Since(begun).Round(time.Millisecond)); err != nil {
		return err
	}
	if copied.Continued > 0 {
		if _, err := fmt.Fprintf(out, ", %d of them before", copied.Continued); err != nil {
			return err
		}
	}
	return told(out, "\nmoved from "+from.name()+" to", to.name(), j.sum)
}

// backupStore copies a PostgreSQL database into a file.
func backupStore(ctx context.Context, o backupOptions, file string, out, errs io.Writer) (err error) {
	s, err := postgres.Open(ctx, o.store, postgres.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	j := newJob(o, errs)
	err = sqlite.LoadFile(ctx, file, func(l *sqlite.Loader) (err error) {
		rows, err := s.Inspect(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		_, err = j.run(ctx, rows, l, "", "")
		return err
	}, j.checkFile(ctx))
	if err != nil {
		return err
	}
	return told(out, "backed up to", file, j.sum)
}

// restoreStore copies a backup into a PostgreSQL database.
func restoreStore(ctx context.Context, o backupOptions, file string, out, errs io.Writer) (err error) {
	temp, err := os.MkdirTemp("", "weft-restore-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	s, err := sqlite.OpenCurrent(ctx, file, temp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	j := newJob(o, errs)
	if _, err := j.into(ctx, s, o.place, false); err != nil {
		return err
	}
	return told(out, "restored to", o.name(), j.sum)
}
