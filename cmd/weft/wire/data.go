package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/audit"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/journal"
	"github.com/weftrun/weft/host/module"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite"
)

// Inspection is a store as it is at one moment, read row by row.
type Inspection interface {
	audit.Source
	record.Source
	Close() error
}

// Inspect begins to read a store on SQLite or PostgreSQL row by row.
func Inspect(ctx context.Context, s host.Store) (Inspection, error) {
	// After an error each case returns nil, and not i: an interface that holds a nil pointer is
	// not nil.
	switch s := s.(type) {
	case *sqlite.Store:
		i, err := s.Inspect(ctx)
		if err != nil {
			return nil, err
		}
		return i, nil
	case *postgres.Store:
		i, err := s.Inspect(ctx)
		if err != nil {
			return nil, err
		}
		return i, nil
	}
	return nil, fmt.Errorf("a store of type %T cannot be inspected", s)
}

// Check verifies the content of a store on SQLite or PostgreSQL at one moment. It calls
// found with each fault, and progress, unless it is nil, with the current work; see
// [audit.Config].
//
// # Errors
//
// Why the check could not be made or completed. Faults are not errors.
func Check(ctx context.Context, s host.Store, found func(audit.Fault) error, progress func(what string, done, total int)) (sum audit.Summary, err error) {
	versions, err := module.New(module.Config{Store: s})
	if err != nil {
		return sum, err
	}
	rows, err := Inspect(ctx, s)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	graph := func(version string) (*engine.Graph, error) {
		v, err := versions.ByDigest(version)
		if err != nil {
			return nil, err
		}
		return v.Graph, nil
	}
	return audit.Run(ctx, audit.Config{Source: rows, Row: journal.CheckRow, Graph: graph, Found: found, Progress: progress})
}

// CheckFile verifies a backup; see [Check].
func CheckFile(ctx context.Context, file string, found func(audit.Fault) error, progress func(what string, done, total int)) (sum audit.Summary, err error) {
	s, err := sqlite.OpenFile(file)
	if err != nil {
		return sum, fmt.Errorf("check the copy: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return Check(ctx, s, found, progress)
}
