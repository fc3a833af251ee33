package httpapi

import (
	"strconv"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// Quotas refuses what is more than a tenant may have. Its methods may be called from
// any goroutine; their errors are [*host.Error]s.
type Quotas interface {
	// Request counts a request.
	Request(tenant string) error
	// Reader counts a reader of a stream until it leaves.
	Reader(tenant string) (leave func(), err error)
}

// admit counts a request, or refuses it.
func (s *Server) admit(tenant string) error {
	if s.cfg.Quotas == nil {
		return nil
	}
	return s.cfg.Quotas.Request(tenant)
}

// reader counts a reader of a stream, or refuses it.
func (s *Server) reader(tenant string) (leave func(), err error) {
	if s.cfg.Quotas == nil {
		return func() {}, nil
	}
	return s.cfg.Quotas.Reader(tenant)
}

// appendBreach appends the limit field of an error, if it has one.
func appendBreach(dst []byte, b *limit.Breach) []byte {
	if b == nil {
		return dst
	}
	dst = appendString(append(dst, `,"limit":{"name":`...), b.Limit)
	dst = strconv.AppendInt(append(dst, `,"value":`...), b.Value, 10)
	dst = strconv.AppendInt(append(dst, `,"used":`...), b.Used, 10)
	return append(dst, '}')
}

// figure is a named number of an answer.
type figure struct {
	name  string
	value uint64
}

func appendFigures(dst []byte, list ...figure) []byte {
	for _, n := range list {
		dst = append(appendString(append(dst, ','), n.name), ':')
		dst = strconv.AppendUint(dst, n.value, 10)
	}
	return dst
}

// appendUsage appends what a tenant has and has used.
func appendUsage(dst []byte, name string, u *host.TenantUsage) []byte {
	dst = appendString(append(dst, `{"tenant":`...), name)
	dst = append(dst, `,"runs":{`...)
	for i, status := range []host.Status{host.StatusRunning, host.StatusCompleted, host.StatusFailed, host.StatusCancelled} {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, string(status)), ':')
		dst = strconv.AppendInt(dst, int64(u.Runs[status]), 10)
	}
	dst = append(dst, '}')
	dst = appendFigures(dst, figure{"steps", u.Steps}, figure{"fuel", u.Fuel}, figure{"handlers", uint64(u.Handlers)},
		figure{"sessions", uint64(u.Sessions)}, figure{"plugins", uint64(u.Plugins)}, figure{"plugin_versions", uint64(u.Versions)},
		figure{"plugin_bytes", uint64(u.PluginBytes)}, figure{"journal_bytes", uint64(u.JournalBytes)}, figure{"stream_bytes", uint64(u.StreamBytes)},
		figure{"runs_started", u.RunsStarted}, figure{"log_bytes", u.LogBytes})
	dst = append(dst, `,"months":[`...)
	for i := range u.Months {
		m := &u.Months[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"month":`...), m.Month.String())
		dst = append(appendFigures(dst, figure{"runs_started", m.Runs}, figure{"fuel", m.Fuel}, figure{"log_bytes", m.LogBytes}), '}')
	}
	dst = append(dst, `],"quotas":[`...)
	for i, q := range u.Quotas {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(append(dst, `{"name":`...), q.Quota.String())
		dst = appendOrNull(append(dst, `,"limit":`...), q.Limit, q.Limit == 0)
		dst = append(appendOrNull(append(dst, `,"used":`...), max(q.Used, 0), q.Quota.IsRate()), '}')
	}
	return append(dst, "]}"...)
}

func appendOrNull(dst []byte, n int64, null bool) []byte {
	if null {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}
