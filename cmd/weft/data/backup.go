package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host/audit"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/sqlite"
)

// backupOptions are the flags of `weft backup` and `weft restore`.
type backupOptions struct {
	place
	force    bool
	noVerify bool
}

// NewBackup makes the command 'weft backup'.
func NewBackup() *cobra.Command {
	var o backupOptions
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database into a file, also while the server runs",
		Long: `Copy the database of a data directory into one file, as it is at one moment. The copy
contains everything that the server had acknowledged before the copy began. A server on
the directory keeps running; its log grows until the copy is made.

The copy is written under a temporary name beside FILE, verified as by 'weft check',
and then renamed. It does not contain compiled code: a server compiles the modules again.
A command that is killed leaves files .FILE.*.partial, which nothing uses: delete them.

With --store the command copies a PostgreSQL database into the same kind of file, from one
snapshot. The address may be that of a replica. PostgreSQL cannot remove old rows while
the snapshot lasts: prefer a replica, or PostgreSQL's own backups, for a large database.`,
		Example: `  weft backup /backups/weft-$(date +%F).db
  weft backup --data /var/lib/weft --force latest.db
  weft backup --no-verify damaged.db      # saves what still reads
  weft backup --store postgres://weft@replica.internal/weft weft.db`,
		Args: cli.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return backup(cmd.Context(), o, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.flags(f, "`DIR` to copy from", "`URL` of a PostgreSQL database to copy from, in place of --data")
	f.BoolVar(&o.force, "force", false, "replace an existing FILE")
	f.BoolVar(&o.noVerify, "no-verify", false, "do not check the copy")
	return cmd
}

func backup(ctx context.Context, o backupOptions, file string, out, errs io.Writer) (err error) {
	if _, err := os.Stat(file); err == nil && !o.force {
		return fmt.Errorf("%s already exists: use another name, or --force to replace it", file)
	}
	if o.store != "" {
		return backupStore(ctx, o, file, out, errs)
	}
	s, err := sqlite.OpenToCopy(o.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	view := screen.NewBar(errs)
	verify, sum := verifier(ctx, o, view, errs)
	err = s.Backup(ctx, file, pages(view), verify)
	view.Clear()
	if err != nil {
		return err
	}
	return told(out, "backed up to", file, sum)
}

// NewRestore makes the command 'weft restore'.
func NewRestore() *cobra.Command {
	var o backupOptions
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory from a backup",
		Long: `Make a data directory from a backup. The directory must be empty or missing: nothing is
replaced. The command copies the backup, brings it to the form of this version of weft,
verifies it as 'weft check' does, and only then makes it the directory's database. It
refuses a backup of a newer version.

The backup does not contain what happened after it was made. Runs that were in progress
continue from where they were at that time. They repeat the calls to the outside that
they have made since, under the same keys.

With --store the command copies the backup into an empty schema of a PostgreSQL database.
If the command is interrupted, the same command continues the copy.`,
		Example: `  weft restore /backups/weft-2026-11-21.db --data /var/lib/weft
  weft serve --data /var/lib/weft
  weft restore weft.db --store postgres://weft@db.internal/weft`,
		Args: cli.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return restore(cmd.Context(), o, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.flags(f, "`DIR` to make; it may exist if it is empty", "`URL` of a PostgreSQL database to copy to, in place of --data; the schema must be missing or empty")
	f.BoolVar(&o.noVerify, "no-verify", false, "do not check the backup: a server will quarantine sessions that it cannot read")
	return cmd
}

func restore(ctx context.Context, o backupOptions, file string, out, errs io.Writer) error {
	if o.store != "" {
		return restoreStore(ctx, o, file, out, errs)
	}
	view := screen.NewBar(errs)
	verify, sum := verifier(ctx, o, view, errs)
	err := sqlite.Restore(ctx, file, o.data, pages(view), verify)
	view.Clear()
	if err != nil {
		return err
	}
	return told(out, "restored to", o.data, sum)
}

// NewCompact makes the command 'weft compact'.
func NewCompact() *cobra.Command {
	var o backupOptions
	var reindex bool
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Free the disk space of deleted data",
		Long: `Make the database of a data directory smaller by removing the pages that deleted runs
have left. A server reuses such pages by itself, so this helps only after much has been
deleted. No server may run on the directory, and the disk needs free space of twice the
size of the content.

With --store the command rewrites the tables of a PostgreSQL database (VACUUM FULL).
PostgreSQL reuses the space of deleted rows by itself, so this is rarely useful. If the
command is interrupted, some tables are rewritten and the others are as they were.`,
		Example: `  weft compact --data /var/lib/weft`,
		Args:    cli.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.settle(cmd.Flags()); err != nil {
				return err
			}
			return compact(cmd.Context(), o, reindex, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.flags(cmd.Flags(), "`DIR` to compact", "`URL` of a PostgreSQL database to compact, in place of --data")
	cmd.Flags().BoolVar(&reindex, "reindex", false, "rebuild the index of words for 'weft runs --search'")
	return cmd
}

// compactor is a store that can be compacted.
type compactor interface {
	Reindex(ctx context.Context) error
	Compact(ctx context.Context, progress func(what string, done, total int)) (before, after int64, err error)
	Close() error
}

func (o *backupOptions) openToCompact(ctx context.Context) (compactor, error) {
	// A nil pointer in an interface is not nil, so errors return nil themselves.
	if o.store != "" {
		s, err := postgres.Open(ctx, o.store, postgres.Options{Exclusive: true})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if info, err := os.Stat(o.data); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no data directory %s", o.data)
	}
	s, err := sqlite.Open(o.data)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func compact(ctx context.Context, o backupOptions, reindex bool, out, errs io.Writer) (err error) {
	s, err := o.openToCompact(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	view := screen.NewBar(errs)
	defer view.Clear()
	if reindex {
		view.Show("rebuilding the index of words", 0, 0)
		if err := s.Reindex(ctx); err != nil {
			return err
		}
	}
	before, after, err := s.Compact(ctx, view.Show)
	view.Clear()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s had %s, and has %s\n", o.name(), megabytes(before), megabytes(after))
	return err
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// pages shows the progress of a copy.
func pages(view *screen.Bar) sqlite.Progress {
	return func(done, total int) { view.Show("pages", done, total) }
}

// verifier returns the function that verifies a copy in a file, and the summary that the
// function fills in. Both are nil if the copy is not to be verified.
func verifier(ctx context.Context, o backupOptions, view *screen.Bar, errs io.Writer) (func(string) error, *audit.Summary) {
	if o.noVerify {
		return nil, nil
	}
	sum := &audit.Summary{}
	return func(file string) error {
		return verify(ctx, view, errs, sum, func(found func(audit.Fault) error, progress func(string, int, int)) (audit.Summary, error) {
			return wire.CheckFile(ctx, file, found, progress)
		})
	}, sum
}

// verify checks a copy, prints the faults and fills in the summary.
func verify(ctx context.Context, view *screen.Bar, errs io.Writer, sum *audit.Summary,
	check func(found func(audit.Fault) error, progress func(string, int, int)) (audit.Summary, error)) (err error) {
	*sum, err = check(func(f audit.Fault) error {
		view.Clear()
		_, err := io.WriteString(errs, faultText(f))
		return err
	}, view.Show)
	view.Clear()
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w; --no-verify skips the check", err)
	}
	if err == nil && sum.Faults > 0 {
		err = fmt.Errorf("%w: %s, and the copy is not used; --no-verify makes one anyway", errFaulty, screen.Counted(uint64(sum.Faults), "fault"))
	}
	return err
}

// told prints what was done.
func told(out io.Writer, done, where string, sum *audit.Summary) error {
	what := "not verified"
	if sum != nil {
		what = fmt.Sprintf("verified: %s with %s, %s", screen.Counted(uint64(sum.Sessions), "session"), entries(sum.Entries), screen.Counted(uint64(sum.Runs), "run"))
	}
	_, err := fmt.Fprintf(out, "%s %s (%s)\n", done, where, what)
	return err
}
