package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weftrun/weft/host"
)

// maySee reports whether a grant may see the data of a tenant.
func maySee(by *host.Grant, tenant string) bool {
	return by.Server && !by.Named || by.Tenant == tenant
}

// CreateKey implements [host.Access].
func (s *Service) CreateKey(ctx context.Context, by *host.Grant, req host.KeyRequest) (_ host.KeyRecord, secret string, err error) {
	defer func() { s.noteFailure(ctx, by, "key.create", req.Name, err) }()
	if err := s.checkKey(&req); err != nil {
		return host.KeyRecord{}, "", err
	}
	if req.Tenant == "" {
		req.Tenant = by.Tenant
	}
	if !by.Server && req.Tenant != by.Tenant {
		return host.KeyRecord{}, "", errNoTenant
	}
	if s.keyless {
		return host.KeyRecord{}, "", s.keylessError(req.Tenant)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	drop, err := s.roomForKey(req.Tenant)
	if err != nil {
		return host.KeyRecord{}, "", err
	}
	secret, prefix := newSecret(req.Tenant)
	k := host.KeyRecord{
		ID: newID(), Tenant: req.Tenant, Role: req.Role, Name: req.Name, Prefix: prefix, Hash: sha256.Sum256([]byte(secret)),
		Created: s.now(), Expires: req.Expires,
	}
	c := host.AccessChange{Keys: []host.KeyRecord{k}, DropKeys: drop,
		Audit: []host.AuditEntry{s.entry(by, k.Tenant, "key.create", k.ID, string(k.Role)+" "+k.Name)}}
	if err := s.store(ctx, c); err != nil {
		return host.KeyRecord{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range drop {
		s.dropKey(id)
	}
	s.putKey(k)
	return k, secret, nil
}

// keylessError is the error for making a key on a server without keys.
func (s *Service) keylessError(tenant string) error {
	if tenant != host.DefaultTenant {
		return errNoTenant
	}
	return errKeylessOn
}

// checkKey refuses an invalid request for a key.
func (s *Service) checkKey(req *host.KeyRequest) error {
	switch {
	case !req.Role.Known():
		return host.Errorf(host.CodeInvalidArgument, "A key's role is read, run, deploy or admin")
	case len(req.Name) > MaxKeyNameBytes || !utf8.ValidString(req.Name) || strings.ContainsFunc(req.Name, unicode.IsControl):
		return host.Errorf(host.CodeInvalidArgument, "A key's name is a line of at most %d bytes", MaxKeyNameBytes)
	case req.Expires != 0 && req.Expires <= s.now():
		return host.Errorf(host.CodeInvalidArgument, "'expires_at' must be a time in the future")
	}
	return nil
}

// roomForKey returns the keys to drop so that a tenant can have one more: none, or the
// key that was revoked or expired first.
func (s *Service) roomForKey(tenant string) (drop []string, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if t := s.tenants[tenant]; t == nil || t.closed.Load() {
		return nil, errNoTenant
	}
	n, now := 0, s.now()
	var oldest *host.KeyRecord
	for _, k := range s.keys {
		if k.record.Tenant != tenant {
			continue
		}
		n++
		if at := endedAt(&k.record, now); at != 0 && (oldest == nil || at < endedAt(oldest, now)) {
			oldest = &k.record
		}
	}
	switch {
	case n < MaxKeys:
		return nil, nil
	case oldest == nil:
		return nil, host.Errorf(host.CodeLimitExceeded, "A tenant has at most %d keys: revoke some", MaxKeys)
	}
	return []string{oldest.ID}, nil
}

// endedAt returns when a key was revoked or expired, or 0.
func endedAt(k *host.KeyRecord, now int64) int64 {
	switch {
	case k.Revoked != 0:
		return k.Revoked
	case k.Expires != 0 && k.Expires <= now:
		return k.Expires
	}
	return 0
}

// Keys implements [host.Access].
func (s *Service) Keys(_ context.Context, by *host.Grant) ([]host.KeyRecord, error) {
	s.mu.RLock()
	var list []host.KeyRecord
	for _, k := range s.keys {
		if maySee(by, k.record.Tenant) && !k.tenant.record.Deleting {
			list = append(list, k.shown())
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(list, func(a, b host.KeyRecord) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Created, b.Created), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}

// shown returns the key's record with its last use and without hashes. mu is held.
func (k *key) shown() host.KeyRecord {
	r := k.record
	r.LastUsed = k.used.Load()
	r.Hash, r.Previous = [32]byte{}, [32]byte{}
	return r
}

// Key implements [host.Access].
func (s *Service) Key(_ context.Context, by *host.Grant, id string) (host.KeyRecord, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.keys[id]
	if k == nil || !maySee(by, k.record.Tenant) || k.tenant.record.Deleting {
		return host.KeyRecord{}, errKeyNone
	}
	return k.shown(), nil
}

// liveKey returns the record of a key that is not revoked, with its last use.
func (s *Service) liveKey(by *host.Grant, id string) (host.KeyRecord, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := s.keys[id]
	if k == nil || !maySee(by, k.record.Tenant) || k.record.Revoked != 0 || k.tenant.record.Deleting {
		return host.KeyRecord{}, errKeyNone
	}
	r := k.record
	r.LastUsed = k.used.Load()
	return r, nil
}

// RevokeKey implements [host.Access].
func (s *Service) RevokeKey(ctx context.Context, by *host.Grant, id string) (err error) {
	defer func() { s.noteFailure(ctx, by, "key.revoke", id, err) }()
	s.changing.Lock()
	defer s.changing.Unlock()
	k, err := s.liveKey(by, id)
	if err != nil {
		return err
	}
	k.Revoked = s.now()
	return s.change(ctx, k, true, s.entry(by, k.Tenant, "key.revoke", k.ID, k.Name))
}

// RotateKey implements [host.Access].
func (s *Service) RotateKey(ctx context.Context, by *host.Grant, id string, grace time.Duration) (_ host.KeyRecord, secret string, err error) {
	defer func() { s.noteFailure(ctx, by, "key.rotate", id, err) }()
	if grace < 0 || grace > MaxRotateGrace {
		return host.KeyRecord{}, "", host.Errorf(host.CodeInvalidArgument, "The grace of a key is between 0 and %.0f seconds", MaxRotateGrace.Seconds())
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	k, err := s.liveKey(by, id)
	if err != nil {
		return host.KeyRecord{}, "", err
	}
	if endedAt(&k, s.now()) != 0 {
		return host.KeyRecord{}, "", host.Errorf(host.CodeFailedPrecondition, "The key has expired, and a new secret would not change that: make another key")
	}
	// Only one old secret is valid at a time, and none if the grace is 0.
	k.Previous, k.PreviousPrefix, k.PreviousUntil = [32]byte{}, "", 0
	if grace > 0 {
		k.Previous, k.PreviousPrefix, k.PreviousUntil = k.Hash, k.Prefix, s.now()+int64(grace)
	}
	secret, k.Prefix = newSecret(k.Tenant)
	k.Hash = sha256.Sum256([]byte(secret))
	if err := s.change(ctx, k, grace == 0, s.entry(by, k.Tenant, "key.rotate", k.ID, k.Name)); err != nil {
		return host.KeyRecord{}, "", err
	}
	return k, secret, nil
}

// change writes a key that exists already. With end, the open requests of the key end.
// changing is held.
func (s *Service) change(ctx context.Context, record host.KeyRecord, end bool, e host.AuditEntry) error {
	if err := s.store(ctx, host.AccessChange{Keys: []host.KeyRecord{record}, Audit: []host.AuditEntry{e}}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.keys[record.ID]
	k := s.putKey(record)
	// Requests may have used the key while the change was being stored.
	k.used.Store(max(k.used.Load(), old.used.Load()))
	if end {
		old.end(errWrongKey)
	} else {
		k.done, k.end = old.done, old.end
	}
	return nil
}
