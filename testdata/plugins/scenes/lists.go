package main

import (
	"slices"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

type (
	// FanEvent and the next three each begin something with lists of events.
	FanEvent struct {
		N    int64
		Text string
	}
	// NestEvent is for lists in a list.
	NestEvent struct{ N int64 }
	// DealEvent is for a list of which two are enough.
	DealEvent struct{ N int64 }
	// JoinEvent is for two that are joined.
	JoinEvent struct {
		N    int64
		Text string
	}
	// PartEvent is one of many that are worked on side by side.
	PartEvent struct {
		I    int64
		Text string
	}
	// PieceEvent is what comes of a part.
	PieceEvent struct{ I int64 }
	// RowEvent is one of many that have many in them.
	RowEvent struct{ Row, N int64 }
	// CellEvent is one in a row.
	CellEvent struct{ V int64 }
	// SumEvent is what comes of a row.
	SumEvent struct{ Sum int64 }
	// CardEvent is one of many of which two are enough.
	CardEvent struct{ V int64 }
	// SunEvent and MoonEvent are joined.
	SunEvent struct{ N int64 }
	// MoonEvent is the other one.
	MoonEvent struct{ Text string }
)

func fan(_ *context, ev FanEvent) ([]PartEvent, error) {
	var list []PartEvent
	for i := range ev.N {
		list = append(list, PartEvent{i, ev.Text})
	}
	return list, nil
}

func nest(_ *context, ev NestEvent) ([]RowEvent, error) {
	var list []RowEvent
	for i := range ev.N {
		list = append(list, RowEvent{i, ev.N})
	}
	return list, nil
}

func deal(_ *context, ev DealEvent) ([]CardEvent, error) {
	var list []CardEvent
	for i := range ev.N {
		list = append(list, CardEvent{i})
	}
	return list, nil
}

// both begins a join, with half of it if it has no text.
func both(ctx *context, ev JoinEvent) (SunEvent, error) {
	if ev.Text == "" {
		return SunEvent{ev.N}, nil
	}
	return SunEvent{ev.N}, ctx.Send(MoonEvent{ev.Text})
}

// part gives a piece, gives none, or fails: once or for good.
func part(ctx *context, ev PartEvent) (*PieceEvent, error) {
	first := ctx.RunInfo().Attempt == 1
	switch {
	case ev.I == 1 && ev.Text == "skip":
		return nil, nil
	case ev.I == 1 && (ev.Text == "fail" || ev.Text == "flaky" && first):
		return nil, &weft.Error{Code: "part", Message: "part 1 fails"}
	}
	return &PieceEvent{ev.I * 10}, nil
}

// mend gives a piece in the place of one that failed.
func mend(_ *context, ev weft.StepFailed) (PieceEvent, error) {
	return PieceEvent{-int64(ev.Attempts)}, nil
}

func gather(_ *context, all []PieceEvent) (weft.Stop, error) {
	numbers := []int64{}
	for _, piece := range all {
		numbers = append(numbers, piece.I)
	}
	slices.Sort(numbers)
	return weft.Result(numbers), nil
}

func row(_ *context, ev RowEvent) ([]CellEvent, error) {
	var cells []CellEvent
	for i := range ev.N {
		cells = append(cells, CellEvent{ev.Row*ev.N + i})
	}
	return cells, nil
}

func cells(_ *context, all []CellEvent) (SumEvent, error) {
	var sum int64
	for _, cell := range all {
		sum += cell.V
	}
	return SumEvent{sum}, nil
}

func total(_ *context, all []SumEvent) (weft.Stop, error) {
	var sum int64
	for _, row := range all {
		sum += row.Sum
	}
	return weft.Result([]any{len(all), sum}), nil
}

func hand(_ *context, cards []CardEvent) (weft.Stop, error) {
	return weft.Result(len(cards)), nil
}

// Sky is what sky joins.
type Sky struct {
	weft.Join
	Sun  SunEvent
	Moon MoonEvent
}

func sky(_ *context, both Sky) (weft.Stop, error) {
	return weft.Result([]any{both.Sun.N, both.Moon.Text}), nil
}
