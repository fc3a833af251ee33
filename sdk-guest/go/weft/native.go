//go:build !wasm

package weft

import (
	"reflect"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
)

func init() {
	boundary.EventName = func(event any) (string, error) {
		et, err := eventOf(reflect.TypeOf(event))
		if err != nil {
			return "", err
		}
		return et.name, nil
	}
	boundary.Aside = func() func() {
		outer, describe, run := defined, boundary.Describe, boundary.Step
		defined = nil
		return func() { defined, boundary.Describe, boundary.Step = outer, describe, run }
	}
}
