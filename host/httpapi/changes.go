package httpapi

import (
	"maps"
	"reflect"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// changesOf returns how a version of a plugin differs from an older one, by part and name.
func changesOf(before, after *host.PluginInfo) []apiwire.Change {
	a, b := manifestOf(before), manifestOf(after)
	changes := []apiwire.Change{}
	for _, part := range keysOf(a, b) {
		if x, y := named(a[part]), named(b[part]); x != nil || y != nil {
			changes = append(changes, changesIn(part, x, y)...)
			continue
		}
		if change := kindOf(a, b, part); change != "" {
			changes = append(changes, apiwire.Change{Part: part, Change: change})
		}
	}
	return append(changes, changesIn("imports", set(before.Imports), set(after.Imports))...)
}

func manifestOf(info *host.PluginInfo) map[string]any {
	decoded, _ := abi.DecodeValue(info.Manifest) // the upload has checked it
	members, _ := decoded.(map[string]any)
	return members
}

// named returns the values of a part by their names: those of a map, and those of a list
// whose elements have names. It returns nil for any other part.
func named(part any) map[string]any {
	switch v := part.(type) {
	case map[string]any:
		return v
	case []any:
		out := map[string]any{}
		for _, element := range v {
			members, _ := element.(map[string]any)
			name, ok := members["name"].(string)
			if !ok {
				return nil
			}
			out[name] = members
		}
		return out
	}
	return nil
}

func set(names []string) map[string]any {
	out := make(map[string]any, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
}

// changesIn returns the changes of the values of a part, by name.
func changesIn(part string, a, b map[string]any) []apiwire.Change {
	var changes []apiwire.Change
	for _, name := range keysOf(a, b) {
		change := apiwire.Change{Part: part, Name: name, Change: kindOf(a, b, name)}
		if change.Change == "" {
			continue
		}
		x, _ := a[name].(map[string]any)
		y, _ := b[name].(map[string]any)
		if x != nil && y != nil {
			for _, member := range keysOf(x, y) {
				if kindOf(x, y, member) != "" {
					change.Members = append(change.Members, member)
				}
			}
		}
		changes = append(changes, change)
	}
	return changes
}

// kindOf returns how the value of a key differs, or "" if it does not.
func kindOf(a, b map[string]any, key string) string {
	x, before := a[key]
	y, after := b[key]
	switch {
	case !before:
		return "added"
	case !after:
		return "removed"
	case !reflect.DeepEqual(x, y):
		return "changed"
	}
	return ""
}

// keysOf returns the keys of both maps, sorted.
func keysOf(a, b map[string]any) []string {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]any{}
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}
