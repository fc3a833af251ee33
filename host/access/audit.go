package access

import (
	"context"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host"
)

// entry returns an entry of the audit log for an act that succeeded.
func (s *Service) entry(by *host.Grant, tenant, act, target, detail string) host.AuditEntry {
	return host.AuditEntry{Time: s.now(), Who: by.Who(), Tenant: tenant, Act: act, Target: clip(target), Detail: clip(detail), Outcome: host.AuditOK}
}

// maxAuditText bounds each text of an entry, in bytes. Some texts come from clients.
const maxAuditText = 200

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxAuditText)], "") }

// noteFailure adds an act that failed or was refused to the log of the tenant that tried
// it. An invalid request is not an act.
func (s *Service) noteFailure(ctx context.Context, by *host.Grant, act, target string, err error) {
	if err == nil || host.CodeOf(err) == host.CodeInvalidArgument {
		return
	}
	if by.Server && !by.Named {
		s.note(ctx, by, "", act, target, err)
		return
	}
	s.note(ctx, by, by.Tenant, act, target, err)
}

// Note implements [host.Access]. If the entry cannot be written, Note reports that to the
// server's log, because the act itself is done.
func (s *Service) Note(ctx context.Context, by *host.Grant, act, target string, outcome error) {
	s.note(ctx, by, by.Tenant, act, target, outcome)
}

func (s *Service) note(ctx context.Context, by *host.Grant, tenant, act, target string, outcome error) {
	e := s.entry(by, tenant, act, target, "")
	if outcome != nil {
		e.Outcome = string(host.CodeOf(outcome))
	}
	err := s.cfg.Store.ChangeAccess(context.WithoutCancel(ctx), host.AccessChange{Audit: []host.AuditEntry{e}})
	if err != nil {
		s.cfg.Log.Error("an entry of the audit log is lost", "who", e.Who, "tenant", tenant, "act", act, "target", target, "error", err)
	}
}

// auditWrongKey is who has sent a wrong key.
const auditWrongKey = "wrong key"

// NoteWrongKey adds an entry to the server's audit log: an address has sent a wrong key
// or, if refused is set, so many wrong keys that its keys are not looked at any more.
// others is the number of wrong keys, from any address, that have no entry of their own
// since the last entry. Strangers cause these entries, so the caller must keep their
// number small.
func (s *Service) NoteWrongKey(ctx context.Context, address string, refused bool, others int) {
	e := host.AuditEntry{Time: s.now(), Who: auditWrongKey, Act: "key.try", Target: clip(address), Outcome: string(host.CodeUnauthenticated)}
	if refused {
		e.Outcome = string(host.CodeLimitExceeded)
	}
	if others > 0 {
		e.Detail = strconv.Itoa(others) + " more since the entry before"
	}
	err := s.cfg.Store.ChangeAccess(context.WithoutCancel(ctx), host.AccessChange{Audit: []host.AuditEntry{e}})
	if err != nil {
		s.cfg.Log.Error("an entry of the audit log is lost", "who", e.Who, "act", e.Act, "target", e.Target, "error", err)
	}
}

// Audit implements [host.Access].
func (s *Service) Audit(ctx context.Context, by *host.Grant, before int64, limit int) (list []host.AuditEntry, more bool, err error) {
	list, more, err = s.cfg.Store.Audit(ctx, host.AuditQuery{All: by.Server && !by.Named, Tenant: by.Tenant, Before: before, Limit: limit})
	if err != nil {
		return nil, false, unavailable(err)
	}
	return list, more, nil
}
