package limit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/jsonfile"
)

// Parse reads the settings of a [Table], a JSON object:
//
//	{"defaults": {"memory_bytes": "128MiB", "tenant_fuel_per_second": 2e9},
//	 "plugins":  {"crunch": {"fuel": 50000000000, "wall_time": "2m"}},
//	 "tenants":  {"acme": {"fuel": 1000000000, "plugins": {"crunch": {"call_depth": "4MiB"}}}}}
//
// The names of the settings are the names of [Limits] in snake case. A setting that is
// absent is inherited. tenant_fuel_per_second applies to all runs of a tenant, so it
// cannot be set for a plugin; 0 means none.
//
// # Errors
//
// A [*jsonfile.Error] with all errors: unknown names, duplicate names, values of a wrong
// type or out of bounds, each with its place and the allowed values; or with the first
// place at which the text is not JSON.
func Parse(text []byte) (*Table, error) {
	p := &limitParser{jsonfile.NewReader(text)}
	t := &Table{plugins: map[string]limitLayer{}, tenants: map[string]tenantLayer{}}
	if err := p.file(t, len(bytes.TrimSpace(text)) == 0); err != nil {
		p.Stop(err)
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	t.base = t.all.limits.Complete()
	return t, nil
}

// limitPath is a place in a file of limits: the names on the way to it.
type limitPath []string

// String joins the names by dots; a name that is not plain is quoted.
func (p limitPath) String() string {
	var b strings.Builder
	for i, name := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			name = strconv.Quote(name)
		}
		b.WriteString(name)
	}
	return b.String()
}

func (p limitPath) at(name string) limitPath { return append(p[:len(p):len(p)], name) }

// limitParser reads a file of limits token by token, because errors name their place. Its
// methods return an error only if the text is not JSON.
type limitParser struct{ *jsonfile.Reader }

// skip skips the rest of a value whose first token was read.
func (p *limitParser) skip(first json.Token) error {
	depth := 0
	for tok := first; ; {
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		var err error
		if tok, _, err = p.Token(); err != nil {
			return p.cut(err)
		}
	}
}

// cut describes the error if the text ends too early.
func (p *limitParser) cut(err error) error {
	if errors.Is(err, io.EOF) {
		return p.End()
	}
	return err
}

// object reads an object, and calls each to read the value of each name.
func (p *limitParser) object(path limitPath, each func(name string, at int64) error) error {
	tok, at, err := p.Token()
	if err != nil {
		return p.cut(err)
	}
	if tok != json.Delim('{') {
		p.Problem(at, path.String(), "must be an object, not %s", shownToken(tok))
		return p.skip(tok)
	}
	seen := map[string]bool{}
	for p.More() {
		tok, at, err := p.Token()
		if err != nil {
			return p.cut(err)
		}
		name, _ := tok.(string) // the decoder returns no other token here
		if seen[name] {
			p.Problem(at, path.at(name).String(), "is given twice")
		}
		seen[name] = true
		if err := each(name, at); err != nil {
			return err
		}
	}
	if _, _, err = p.Token(); err != nil {
		return p.cut(err)
	}
	return nil
}

// skipNext skips the next value.
func (p *limitParser) skipNext() error {
	tok, _, err := p.Token()
	if err != nil {
		return p.cut(err)
	}
	return p.skip(tok)
}

func (p *limitParser) file(t *Table, empty bool) error {
	if empty {
		return errors.New("the file is empty: write {} to change nothing")
	}
	err := p.object(nil, func(name string, at int64) error {
		path := limitPath{name}
		switch name {
		case "defaults":
			return p.layer(path, &t.all, true, nil)
		case "plugins":
			return p.pluginLayers(path, t.plugins)
		case "tenants":
			return p.tenantLayers(path, t.tenants)
		}
		p.Problem(at, "", "unknown name %s: use defaults, plugins or tenants", shownToken(name))
		return p.skipNext()
	})
	if err != nil {
		return err
	}
	_, at, err := p.Token()
	if err == nil {
		return p.Fault(at, "more follows the end of the object")
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (p *limitParser) pluginLayers(path limitPath, into map[string]limitLayer) error {
	return p.object(path, func(name string, at int64) error {
		p.checkName(path, name, at)
		var l limitLayer
		err := p.layer(path.at(name), &l, false, nil)
		into[name] = l
		return err
	})
}

func (p *limitParser) tenantLayers(path limitPath, into map[string]tenantLayer) error {
	return p.object(path, func(name string, at int64) error {
		p.checkName(path, name, at)
		l := tenantLayer{plugins: map[string]limitLayer{}}
		err := p.layer(path.at(name), &l.limitLayer, true, l.plugins)
		into[name] = l
		return err
	})
}

// maxLimitName limits the names of tenants and plugins, in bytes.
const maxLimitName = 128

// checkName refuses names that no tenant or plugin can have.
func (p *limitParser) checkName(path limitPath, name string, at int64) {
	if name == "" || len(name) > maxLimitName || strings.ContainsFunc(name, unicode.IsControl) {
		p.Problem(at, path.String(), "%s is not a name: it has 1 to %d bytes, without control characters", shownToken(name), maxLimitName)
	}
}

// layer reads the settings of one place. tenantWide says that settings of a whole tenant
// are allowed; plugins receives the plugins of a tenant, and is nil elsewhere.
func (p *limitParser) layer(path limitPath, l *limitLayer, tenantWide bool, plugins map[string]limitLayer) error {
	return p.object(path, func(name string, at int64) error {
		s, tenants := settingNamed(name), tenantSettingNamed(name)
		switch {
		case name == "plugins" && plugins != nil:
			return p.pluginLayers(path.at(name), plugins)
		case tenants >= 0 && tenantWide:
			v, ok, err := p.value(path.at(name), &tenantSettings[tenants])
			if ok {
				l.tenant[tenants].value, l.tenant[tenants].given = v, true
			}
			return err
		case tenants >= 0:
			p.Problem(at, path.at(name).String(), "holds for all that a tenant runs: set it in defaults or for a tenant, not for a plugin")
			return p.skipNext()
		case s == nil:
			p.Problem(at, path.String(), "unknown setting %s: use %s", shownToken(name), knownSettings(tenantWide))
			return p.skipNext()
		}
		v, ok, err := p.value(path.at(name), s)
		if ok {
			s.set(&l.limits, v)
		}
		return err
	})
}

// value reads the value of a setting; ok is false if the value is not valid.
func (p *limitParser) value(path limitPath, s *limitSetting) (v int64, ok bool, err error) {
	tok, at, err := p.Token()
	if err != nil {
		return 0, false, p.cut(err)
	}
	if v, ok = s.parse(tok); ok {
		return v, true, nil
	}
	p.Problem(at, path.String(), "takes %s, not %s", s.takes(), shownToken(tok))
	return 0, false, p.skip(tok)
}

// knownSettings lists the names of all settings.
func knownSettings(tenantWide bool) string {
	names := make([]string, 0, len(limitSettings)+len(tenantSettings))
	for i := range limitSettings {
		names = append(names, limitSettings[i].name)
	}
	if tenantWide {
		for i := range tenantSettings {
			names = append(names, tenantSettings[i].name)
		}
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// shownToken formats a token of the file for people, shortened if it is long.
func shownToken(tok json.Token) string {
	const most = 60
	switch tok := tok.(type) {
	case nil:
		return "null"
	case json.Delim:
		if tok == '[' {
			return "a list"
		}
		return "an object"
	case string:
		return strconv.Quote(abi.Clip(tok, most))
	case json.Number:
		return abi.Clip(tok.String(), most)
	}
	return fmt.Sprint(tok)
}
