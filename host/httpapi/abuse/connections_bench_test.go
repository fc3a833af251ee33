package abuse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkConnections offers requests over 512 connections to a server that has places
// for eight, at multiples of the rate that eight can serve. A request takes 40 ms and
// almost no computing, so that the places decide and not the machine. It reports the
// requests served a second at each load, as a part of the 200 that are possible, and
// the requests that failed. Run it with -benchtime 1x.
func BenchmarkConnections(b *testing.B) {
	const places, each, clients, length = 8, 40 * time.Millisecond, 512, 8 * time.Second
	const possible = float64(places) / (float64(each) / float64(time.Second))
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		time.Sleep(each)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	})}
	bound := Bind(s, places+1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(bound.Listener(l)) }() // ends with the benchmark
	defer func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	for range b.N {
		for _, load := range []float64{0.5, 1, 2, 5, 10, 20} {
			served, failed := offer("http://"+l.Addr().String(), load*possible, clients, length)
			b.ReportMetric(float64(served)/length.Seconds()/possible, fmt.Sprintf("of-possible@%gx", load))
			b.ReportMetric(float64(failed), fmt.Sprintf("failed@%gx", load))
		}
	}
}

// offer posts requests at a rate while at most clients of them wait. It returns how many
// requests were answered in that time and how many failed.
func offer(url string, perSecond float64, clients int, length time.Duration) (served, failed int64) {
	transport := &http.Transport{MaxConnsPerHost: clients, MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var ok, bad atomic.Int64
	var over atomic.Bool
	var sent sync.WaitGroup
	free := make(chan struct{}, clients)
	due := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
	defer due.Stop()
	for end := time.After(length); ; {
		select {
		case <-end:
			over.Store(true)
			sent.Wait()
			return ok.Load(), bad.Load()
		case <-due.C:
		}
		select {
		case free <- struct{}{}:
		default:
			continue // all clients wait
		}
		sent.Go(func() {
			defer func() { <-free }()
			if err := post(client, url); err != nil {
				bad.Add(1)
			} else if !over.Load() {
				ok.Add(1)
			}
		})
	}
}

// post posts 2 kB and reads the answer.
func post(client *http.Client, url string) error {
	res, err := client.Post(url, "text/plain", strings.NewReader(strings.Repeat("x", 2000)))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}
