package wefttest

import (
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Child replaces a workflow that steps run as their child by a function. The function
// receives the fields of the start event and returns the result. A [Failure] that it
// returns becomes the child's failure. The session's own workflow needs no replacement:
// it can be its own child.
//
//	wefttest.NewSession(wefttest.Child("double", func(start struct{ N int }) (int, error) {
//		return 2 * start.N, nil
//	}))
func Child[E, R any](workflow string, run func(start E) (R, error)) Option {
	return func(s *Session) {
		s.world.addChild(workflow, standIn(workflow, func(body abi.Raw) (any, error) {
			var start E
			if err := codec.Unmarshal(body, &start); err != nil {
				return nil, &Failure{Code: "invalid_argument", Message: "start event: " + err.Error()}
			}
			return run(start)
		}))
	}
}

// ChildOn makes a guest's workflow, such as that of a WebAssembly module, available as a
// child with the given name.
func ChildOn(workflow string, guest Guest) Option {
	return func(s *Session) {
		p, err := compile("child "+workflow, guest)
		if err != nil {
			s.fault = errors.Join(s.fault, err)
			return
		}
		s.world.addChild(workflow, p)
	}
}

func (w *world) addChild(workflow string, p *program) {
	w.children[workflow], w.programs[p.version] = p, p
}
