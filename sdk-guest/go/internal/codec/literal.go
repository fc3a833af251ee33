package codec

import (
	"errors"
	"math"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
)

// literal encodes the text of a tag as a value of the plan's type. (Package strconv's
// parsers and tables would add 20 KB to a guest.)
func (p *Plan) literal(text string) (Raw, error) {
	var fault string
	switch p.kind {
	case kindText:
		return cbor.AppendText(nil, text), nil
	case kindBool:
		if text == "true" || text == "false" {
			return cbor.AppendBool(nil, text == "true"), nil
		}
		fault = "true or false"
	case kindInt, kindUint:
		if neg, digits, point, ok := parse(text); ok && point == 0 {
			if r, ok := p.integer(neg, digits); ok {
				return r, nil
			}
		}
		fault = "an integer that the field's type can hold"
	case kindFloat:
		if neg, digits, point, ok := parse(text); ok && digits < 1<<53 && point <= 22 {
			f := float64(digits) / math.Pow10(point) // both are exact, so the result is rounded once
			if neg {
				f = -f
			}
			return cbor.AppendFloat(nil, f), nil
		}
		fault = "a plain decimal number of at most 15 digits"
	case kindPointer:
		return p.elem.literal(text)
	default:
		return nil, errors.New("only numbers, text and bools take a default, a min or a max by tag")
	}
	return nil, errors.New("the tag's value " + quote(text) + " is not " + fault)
}

// integer encodes a sign and digits if the plan's type can hold them.
func (p *Plan) integer(neg bool, digits uint64) (Raw, bool) {
	switch {
	case p.kind == kindUint:
		return cbor.AppendHead(nil, cbor.MajorUint, digits), !neg && digits <= maxUint(p.bits)
	case neg && digits > 0:
		return cbor.AppendHead(nil, cbor.MajorNegint, digits-1), digits-1 <= uint64(maxInt(p.bits))
	}
	return cbor.AppendHead(nil, cbor.MajorUint, digits), digits <= uint64(maxInt(p.bits))
}

// parse splits a decimal number into its sign, its digits as an integer, and the number
// of digits after the point.
func parse(text string) (neg bool, digits uint64, point int, ok bool) {
	if text != "" && text[0] == '-' {
		neg, text = true, text[1:]
	}
	seenPoint := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '.' && !seenPoint && ok {
			seenPoint, ok = true, false // a digit must follow
			continue
		}
		if c < '0' || c > '9' || digits > (math.MaxUint64-9)/10 {
			return neg, 0, 0, false
		}
		digits, ok = digits*10+uint64(c-'0'), true
		if seenPoint {
			point++
		}
	}
	return neg, digits, point, ok
}
