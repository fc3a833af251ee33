package hostcall_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
)

// Every error that unwinds a guest has a meaning of its own, also when it is wrapped.
func TestClassify(t *testing.T) {
	failed := &abi.Error{Code: "limit_exceeded", Message: "too many host calls"}
	mismatch := &hostcall.Mismatch{}
	tests := []struct {
		err  error
		want hostcall.Unwound
	}{
		{engine.ErrConflict, hostcall.Unwound{Again: true}},
		{hostcall.ErrParked, hostcall.Unwound{Parked: true}},
		{hostcall.ErrSuspended, hostcall.Unwound{Suspended: true}},
		{engine.ErrStale, hostcall.Unwound{Stale: true}},
		{&hostcall.LimitError{Err: failed}, hostcall.Unwound{Fail: failed}},
		{mismatch, hostcall.Unwound{Block: &host.Blocked{Code: host.BlockedReplayMismatch, Message: mismatch.Error()}}},
		{errors.New("of another room"), hostcall.Unwound{}},
	}
	for _, tt := range tests {
		if got := hostcall.Classify(fmt.Errorf("in a step: %w", tt.err)); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v: %+v, want %+v", tt.err, got, tt.want)
		}
	}
}
