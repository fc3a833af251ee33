package hostcall

import (
	"errors"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// The prices of host calls beyond their flat price, in units. Package state has the
// prices of work on the state.
const (
	publishUnits = 3_000 // an event to be routed; plus publishBytes for each 8 bytes
	publishBytes = 8
	visitUnits   = 600 // an item that the engine visits
	digestUnits  = 2   // a byte that is hashed
	requireUnits = 80  // a byte of a wait's requirements: hashed, and kept as a tree
	keepBytes    = 24  // 8 bytes of a record
	logUnits     = 900 // a logged line; plus 1 for each byte
	randomUnits  = 2   // a random byte
)

// maxRequirements bounds the requirements of a wait, in bytes.
const maxRequirements = 64 << 10

// Afford implements host.Metered.
func (a *Attempt) Afford(left uint64, look func(units uint64) error) { a.left, a.look = left, look }

// Charged implements host.Metered.
func (a *Attempt) Charged() uint64 { return a.charged }

// firstLook is the work of a call, in units, that is done before the meter looks for the
// first time. Measuring less work is not worth its cost.
const firstLook = 30_000

// startMeter starts the meter of a live call. An attempt that is older than the price table
// pays no prices, but can still be ended.
func (a *Attempt) startMeter() {
	limit := max(a.left, 1)
	if a.open.Prices == 0 || a.look == nil {
		limit = 0
	}
	a.own = *work.New(limit, a.look)
	a.own.LookAfter(firstLook)
	a.meter = &a.own
}

// fuel returns what the present call has cost so far.
func (a *Attempt) fuel() uint64 {
	if a.open.Prices == 0 {
		return 0
	}
	return a.meter.Spent()
}

// unaffordable turns the error of a call that the guest cannot pay into the guest's end.
func (a *Attempt) unaffordable(im abi.Import, err error) error {
	if over := (*work.Exceeded)(nil); !errors.As(err, &over) {
		return err
	}
	limit := limitf("the work of %s, host call %d, takes more than the fuel that the step has left (limit fuel)", im, a.n)
	limit.Err.Code = host.RunFuelExhausted
	return limit
}

// recordPrice is the price of recording a call.
func recordPrice(req, resp []byte) uint64 {
	if len(req) > maxWhole {
		return digestUnits*uint64(len(req)) + work.Bytes(len(resp), keepBytes)
	}
	return work.Bytes(len(req)+len(resp), keepBytes)
}

// chargeDecoding charges for decoding a request. It counts the items before anything is built
// from them.
func (a *Attempt) chargeDecoding(req []byte) error {
	const often = 1_000 // items
	items, from := 0, 0
	for at := 0; at < len(req); {
		at += itemSize(req[at:])
		if items++; items%often == 0 || at >= len(req) {
			at = min(at, len(req))
			if err := a.meter.Spend(state.CheckPrice((items-1)%often+1, at-from)); err != nil {
				return err
			}
			from = at
		}
	}
	return nil
}

// itemSize is the length of an item's head; for a text or bytes, of the whole item.
// Malformed bytes count as one item up to the end, because the decoder stops there.
func itemSize(b []byte) int {
	arg, size, ok := cbor.Read(b, 0)
	switch major := cbor.Major(b[0]); {
	case !ok:
		return len(b)
	case major == cbor.Bytes || major == cbor.Text:
		return size + int(min(arg, uint64(len(b))))
	}
	return size
}

// chargeEvent charges for the event that a request sends or shows.
func (a *Attempt) chargeEvent(req []byte) error {
	return a.meter.Spend(publishUnits + state.JournalPrice(len(req)) + work.Bytes(len(req), publishBytes))
}

// encode encodes a part of the state, unless it is too long for an answer.
func (a *Attempt) encode(im abi.Import, n *state.Node) ([]byte, error) {
	if err := a.checkLength(im, n.Bytes()); err != nil {
		return nil, err
	}
	return n.EncodeOn(a.meter)
}
