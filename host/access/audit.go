package access

import (
	"context"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host"
)

// entry is an entry of the audit log about something that went well.
func (s *Service) entry(by *host.Grant, tenant, act, target, detail string) host.AuditEntry {
	return host.AuditEntry{Time: s.now(), Who: by.Who(), Tenant: tenant, Act: act, Target: clip(target), Detail: clip(detail), Outcome: host.AuditOK}
}

// maxAuditText bounds a text of an entry in bytes: some come from clients.
const maxAuditText = 200

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxAuditText)], "") }

// noteFailure adds an act that was refused, or failed, to the log of who tried it; a
// request that says nothing sensible is no act.
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

// Note implements [host.Access]. What it cannot write it tells the server's log: the
// act itself is done.
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

// NoteWrongKey adds to the server's log that an address has sent a key that is wrong,
// or so many that its keys are refused unseen. others is how many such keys, from
// wherever, have no entry of their own since the last one: its caller sees to it that
// there are few entries, as strangers make them.
func (s *Service) NoteWrongKey(ctx context.Context, address string, refused bool, others int) {
	e := host.AuditEntry{Time: s.now(), Who: host.AuditWrongKey, Act: "key.try", Target: clip(address), Outcome: string(host.CodeUnauthenticated)}
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
