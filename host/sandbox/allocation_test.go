package sandbox

import (
	"context"
	"testing"
)

// A step that makes no host calls costs the host no memory: its instance, its
// input and its output are all there before.
func TestWarmCallsAllocateNothing(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates")
	}
	s := newBench(t, nil)
	for _, compiler := range guestCompilers {
		inv := echoInvocation(s, guestBuild(t, "kernels", compiler, "echo"), "")
		if allocated := testing.AllocsPerRun(200, func() {
			if res, err := s.Invoke(context.Background(), inv); err != nil || res.Err != nil {
				t.Fatalf("Invoke = %+v, %v", res, err)
			}
		}); allocated > 0 {
			t.Errorf("%s: %v allocations in a call, want none", compiler, allocated)
		}
	}
}
