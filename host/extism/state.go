package extism

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
)

// HostLevel returns the number of the level below which lines are dropped.
func (p *Plugin) HostLevel() int32 {
	if p.Level == len(levels)-1 {
		return math.MaxInt32 // off
	}
	return int32(p.Level)
}

// VarPath returns the path of a variable in the session's state. The last segment is the
// variable's name, with encodings for what a key cannot contain: a byte that is not UTF-8
// is %XX, the empty name is %, and the percent sign is %25.
func (p *Plugin) VarPath(name string) string { return p.Vars + "." + abi.EscapeKey(key(name, false)) }

// OldVarPath returns the path at which older versions kept the variable. They also
// encoded dots, and the first character of a number or of a name of one letter, as %XX.
// "": the same as VarPath.
func (p *Plugin) OldVarPath(name string) string {
	if old := key(name, true); old != key(name, false) {
		return p.Vars + "." + old
	}
	return ""
}

// key returns the key of a variable; with old, the key of older versions.
func key(name string, old bool) string {
	if name == "" {
		return "%"
	}
	var b strings.Builder
	number := strings.Trim(name, "0123456789") == "" || strings.Trim(name[1:], "0123456789") == ""
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n <= 1 || r == '%' || old && (r == '.' || i == 0 && number) {
			_, _ = fmt.Fprintf(&b, "%%%02X", name[i])
			i++
			continue
		}
		b.WriteString(name[i : i+n])
		i += n
	}
	return b.String()
}

// Variable returns the content of a variable from its value in the state. Other steps may
// have stored a value that is not bytes. ok is false if there is no value.
func Variable(value abi.Raw) (content []byte, ok bool, err error) {
	v, err := abi.DecodeValue(value)
	if err != nil {
		return nil, false, err
	}
	switch v := v.(type) {
	case nil:
		return nil, false, nil
	case []byte:
		return v, true, nil
	case string:
		return []byte(v), true, nil
	}
	content, err = abi.ToJSON(value)
	return content, true, err
}

// Config converts a step's configuration: texts unchanged, other values as JSON.
func Config(config abi.Raw) (map[string]string, error) {
	if config == nil {
		return nil, nil
	}
	v, err := abi.DecodeValue(config)
	if err != nil {
		return nil, err
	}
	values, _ := v.(map[string]any)
	texts := make(map[string]string, len(values))
	for name, value := range values {
		if text, ok := value.(string); ok {
			texts[name] = text
			continue
		}
		raw, err := abi.EncodeValue(value)
		if err != nil {
			return nil, err
		}
		text, err := abi.ToJSON(raw)
		if err != nil {
			return nil, err
		}
		texts[name] = string(text)
	}
	return texts, nil
}
