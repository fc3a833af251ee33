package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weftrun/weft/host"
)

// errClosed is the error of every call after Close.
var errClosed = errors.New("the store is closed")

// Codes that expect raises.
const (
	codeFenced    = "WF001" // the epoch is closed, or the batch has another number
	codePartition = "WF002" // a partition is another epoch's
	codeRefused   = "WF004" // a row is not as the batch says
	codeReplica   = "WF005" // commits would not wait for a replica
)

// codeOf returns the SQLSTATE that the server answered, or "".
func codeOf(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// mayPass reports whether the server answered that it could not do what was asked at
// the moment: no resources, a lock, a shutdown, a standby, a disk.
func mayPass(err error) bool {
	code := codeOf(err)
	switch code {
	case "57014", "57P01", "57P02", "57P03", "40P01", "40001", "55P03", "25006", "25P03":
		return true
	}
	return strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58") || strings.HasPrefix(code, "08")
}

// answered reports whether err is the server's answer on a connection that it keeps. Then
// the transaction was rolled back.
func answered(conn *pgx.Conn, err error) bool {
	return codeOf(err) != "" && !conn.IsClosed() && conn.PgConn().TxStatus() == 'I'
}

// lost reports whether err says that there is no connection, or no longer, so that the
// next try may succeed.
func lost(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, errClosed) || errors.Is(err, host.ErrUnreadable) {
		return false
	}
	if code := codeOf(err); code != "" {
		return strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08") || code == "53300"
	}
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || pgconn.SafeToRetry(err) || isNetwork(err)
}

// notFound turns the absence of a row into [host.ErrNotFound]. what names the missing
// thing.
func notFound(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", what, host.ErrNotFound)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, host.ErrErasing):
		return err
	}
	return fmt.Errorf("reading %s: %w", what, err)
}

// isNetwork reports whether err is of a connection.
func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}
