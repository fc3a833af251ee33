//go:build !tinygo

package main

import (
	stdcontext "context"
	"runtime"
	"sync"
	"time"
)

func init() {
	cases["ticker"] = ticker
	cases["timeout"] = timeout
	cases["timers"] = timers
	cases["leave"] = leave
	cases["look"] = look
	cases["stuck"] = func(*context, *report) error { select {} }
	cases["recover"] = recovered
}

func ticker(ctx *context, r *report) error {
	began := time.Now()
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for range 3 {
		r.add("tick", int64((<-t.C).Sub(began)))
	}
	r.add("took", int64(time.Since(began)))
	r.add("host", ctx.Now().UnixNano())
	return nil
}

func timeout(ctx *context, r *report) error {
	began := time.Now()
	limited, cancel := stdcontext.WithTimeout(stdcontext.Background(), 5*time.Second)
	defer cancel()
	deadline, _ := limited.Deadline()
	r.add("left", int64(time.Until(deadline)))
	select {
	case <-limited.Done():
	case <-time.After(time.Minute):
		r.add("ended", "late")
	}
	r.add("error", limited.Err())
	r.add("took", int64(time.Since(began)))
	r.add("host", ctx.Now().UnixNano())
	return nil
}

// timers has goroutines sleep for different times, and says in which order they
// wake and when.
func timers(_ *context, r *report) error {
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	woken := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		r.add(what, int64(time.Since(began)))
		all.Done()
	}
	all.Add(4)
	go func() { time.Sleep(30 * time.Millisecond); woken("third") }()
	go func() { time.Sleep(10 * time.Millisecond); woken("first") }()
	time.AfterFunc(20*time.Millisecond, func() { woken("second") })
	go func() { <-time.After(time.Hour); woken("last") }()
	stopped := time.AfterFunc(time.Minute, func() { r.add("stopped", "ran") })
	stopped.Stop()
	all.Wait()
	return nil
}

// What goroutines that run on would change.
var (
	left    int
	running = make(chan int)
)

// leave returns while goroutines run, sleep, and wait.
func leave(_ *context, r *report) error {
	started := make(chan bool)
	go func() {
		started <- true
		for {
			left++
			runtime.Gosched()
		}
	}()
	go func() {
		started <- true
		time.Sleep(time.Second)
		left += 1_000_000
		println("woken after the end")
	}()
	go func() {
		started <- true
		left += <-running
	}()
	for range 3 {
		<-started
	}
	left++
	r.add("left", left > 0)
	r.add("goroutines", runtime.NumGoroutine())
	return nil
}

// look gives goroutines of an earlier invocation every chance to run on.
func look(_ *context, r *report) error {
	r.add("goroutines", runtime.NumGoroutine())
	for range 100 {
		runtime.Gosched()
	}
	time.Sleep(time.Hour)
	select {
	case running <- 1:
		r.add("received", "by somebody")
	default:
	}
	r.add("left", left)
	return nil
}

func recovered(_ *context, r *report) error {
	func() {
		defer func() { r.add("recovered", recover()) }()
		var none []int
		_ = none[len(cases)]
	}()
	panic("and one that is not")
}
