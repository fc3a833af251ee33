package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
)

// need records the versions that the part's entries need, and drops those that only cut
// rows needed.
func (c *change) need(s *session, p *host.SessionBatch) {
	for _, v := range p.Versions {
		if last := s.versions[v.Digest]; last == nil || *last < v.Seq {
			set(c, s.versions, v.Digest, &v.Seq)
		}
	}
	if p.Cut == 0 {
		return
	}
	for digest, last := range s.versions {
		if *last < s.rows[0].First {
			set(c, s.versions, digest, nil)
		}
	}
}

// settleVersions sweeps after a batch that has deleted or cut journals. It is the last
// part of a batch, and is never undone.
func (c *change) settleVersions(b *host.Batch) {
	for i := range b.Sessions {
		if p := &b.Sessions[i]; p.Cut != 0 || len(p.Drop)+len(p.Purge)+p.Erase > 0 {
			c.store.sweep()
			return
		}
	}
}

// release records that no run can begin with the modules any more, unless another name
// refers to them.
func (s *Store) release(digests ...string) {
	for _, digest := range digests {
		if !s.isNamed(digest) {
			s.released[digest] = true
		}
	}
}

// sweep deletes released versions that no session needs.
func (s *Store) sweep() {
	if len(s.released)+len(s.gone) == 0 {
		return
	}
	needed := map[string]bool{}
	for _, session := range s.sessions {
		for digest := range session.versions {
			needed[digest] = true
		}
	}
	for digest, v := range s.gone {
		if !needed[digest] {
			delete(s.gone, digest)
			continue
		}
		for _, module := range v.Modules {
			needed[module] = true
		}
	}
	for digest := range s.released {
		switch {
		case s.isNamed(digest):
			delete(s.released, digest)
		case !needed[digest]:
			delete(s.released, digest)
			delete(s.modules, digest)
		}
	}
}

// SessionVersions implements [host.Store].
func (s *Store) SessionVersions(ctx context.Context, key host.SessionKey) (list []host.VersionUse, err error) {
	err = s.view(ctx, func() error {
		found := s.sessions[key]
		if found == nil || found.erasing {
			return notFound("session", key.Session)
		}
		for digest, last := range found.versions {
			list = append(list, host.VersionUse{Digest: digest, Seq: *last})
		}
		slices.SortFunc(list, func(a, b host.VersionUse) int { return strings.Compare(a.Digest, b.Digest) })
		return nil
	})
	return list, err
}
