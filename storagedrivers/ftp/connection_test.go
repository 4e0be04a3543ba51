package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestDeadHost: operations end while the host is silent or refuses connections, and work later.
func TestDeadHost(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	proxy := faults.New(t, f.address)
	config := f.config()
	config.Address = proxy.Address
	patient := open(t, config)
	must(t, put(t, patient, "key", "content", create))
	config.Timeout = options.Duration(200 * time.Millisecond)
	d := open(t, config)
	works := func() { // also on a slow machine
		for {
			_, err := d.Stat(t.Context(), "key")
			if err == nil {
				return
			}
			is(t, err, storagedrivers.ErrUnavailable)
		}
	}
	fail := func() {
		var all sync.WaitGroup
		for name, op := range map[string]func() error{
			"put":    func() error { return put(t, d, "other", "content", create) },
			"stat":   func() error { _, err := d.Stat(t.Context(), "key"); return err },
			"open":   func() error { _, err := read(t, d, "key"); return err },
			"list":   func() error { _, err := d.List(t.Context(), storagedrivers.ListOptions{}); return err },
			"delete": func() error { return d.Delete(t.Context(), "other", storagedrivers.DeleteOptions{}) },
			"check":  func() error { return d.Check(t.Context()) },
		} {
			all.Go(func() {
				if err := op(); !errors.Is(err, storagedrivers.ErrUnavailable) {
					t.Errorf("%s: error %v, want %v", name, err, storagedrivers.ErrUnavailable)
				}
			})
		}
		all.Wait()
	}
	works()
	proxy.SetSilent(true)
	fail()
	proxy.SetRefusing(true)
	fail()
	proxy.SetRefusing(false)
	proxy.SetSilent(false)
	works()
	f.has(t, "key")
}

// TestCancelledWhileSilent: a cancelled caller does not wait for the server.
func TestCancelledWhileSilent(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	proxy := faults.New(t, f.address)
	config := f.config()
	config.Address, config.Timeout = proxy.Address, options.Duration(time.Hour)
	d := open(t, config)
	must(t, put(t, d, "key", "content", create))
	proxy.SetSilent(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := d.Stat(ctx, "key")
	is(t, err, context.DeadlineExceeded)
	_, err = d.Put(ctx, "other", strings.NewReader("content"), create)
	is(t, err, context.DeadlineExceeded)
}

// TestServerRestarts: connections that the server closed while they were idle are replaced.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	s := storagedrivers.New("test", newFakeDriver(f.config()), storagedrivers.Options{})
	defer s.Close()
	for range 3 {
		if _, err := s.Put(t.Context(), "key", strings.NewReader("content"), overwrite); err != nil {
			t.Errorf("storing: %v", err)
		}
		f.hangUp()
	}
	f.stop()
	f.listen(t)
	if _, err := s.Stat(t.Context(), "key"); err != nil {
		t.Errorf("stat: %v", err)
	}
}

func TestNoConnectionIsFree(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	config := f.config()
	config.Connections = 1
	d := open(t, config)
	must(t, put(t, d, "key", strings.Repeat("x", maxWhole+1), create))
	body, _, err := d.Open(t.Context(), "key", all)
	must(t, err)
	patience := d.config.Timeout
	d.config.Timeout = options.Duration(50 * time.Millisecond)
	_, err = d.Stat(t.Context(), "key")
	d.config.Timeout = patience
	is(t, err, storagedrivers.ErrBusy)
	is(t, err, os.ErrDeadlineExceeded) // it is not repeated
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Error(err)
	}
	if _, err := d.Stat(t.Context(), "key"); err != nil {
		t.Errorf("stat beside a reader at its end: %v", err)
	}
	is(t, body.Close(), nil)
}

// TestFewConnections: uploads and readers work with the connections that the server allows.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			t.Parallel()
			f := (&fake{facts: true, most: most}).start(t)
			config := f.config()
			config.Connections = 8
			s := storagedrivers.New("test", newFakeDriver(config), storagedrivers.Options{})
			defer s.Close()
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					key := fmt.Sprint("key", i)
					if _, err := s.Put(t.Context(), key, strings.NewReader(key), create); err != nil {
						t.Errorf("storing: %v", err)
						return
					}
					body, _, err := s.Open(t.Context(), key, all)
					if err != nil {
						t.Errorf("opening: %v", err)
						return
					}
					defer body.Close()
					if got, err := io.ReadAll(body); err != nil || string(got) != key {
						t.Errorf("read %q, error %v", got, err)
					}
				})
			}
			wg.Wait()
		})
	}
}
