package resource

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// forms returns the forms in which an answer may echo a secret, the longest first:
// unchanged, and as encoded in a URL, in JSON, in HTML and in base64, including base64 of
// a longer text such as a header with its prefix.
func (s *secret) forms() [][]byte {
	all := []string{s.value, url.QueryEscape(s.value), url.PathEscape(s.value), html.EscapeString(s.value)}
	for _, escape := range []bool{false, true} {
		text := inJSON(s.value, escape)
		all = append(all, text, strings.ReplaceAll(text, "/", `\/`))
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
		all = append(all, encoding.EncodeToString([]byte(s.value)), encoding.EncodeToString([]byte(s.prefix+s.value)))
	}
	for before := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			all = append(all, within(encoding, s.value, before))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var forms [][]byte
	for _, form := range slices.Compact(all) {
		forms = append(forms, []byte(form))
	}
	return forms
}

// inJSON returns a text as JSON writes it, without the quotes.
func inJSON(text string, escapeHTML bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	if err := e.Encode(text); err != nil {
		return text // encoding a text cannot fail
	}
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// within returns the base64 characters that depend on the text alone, if the text begins
// the given number of bytes after a boundary of base64's groups of three bytes.
func within(encoding *base64.Encoding, text string, before int) string {
	const bits = 6 // per base64 character
	whole := encoding.EncodeToString(append(make([]byte, before), text...))
	first := (8*before + bits - 1) / bits
	last := 8 * (before + len(text)) / bits
	return whole[first:last]
}
