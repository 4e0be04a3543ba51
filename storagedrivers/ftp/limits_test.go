package ftp

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestFewConnections: uploads and readers work with the connections that the server allows.
func TestFewConnections(t *testing.T) {
	t.Parallel()
	for _, most := range []int{2, 3} { // a transfer takes two
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

// TestStalledReaders: clients that read slowly leave connections for uploads, checks and short
// objects, and to the long objects of other clients. A further long object is refused as busy after
// the time-out. It is opened as soon as one of the readers leaves.
func TestStalledReaders(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	f := (&fake{facts: true}).start(t)
	config := f.config()
	config.Connections, config.Timeout = defaultConnections, options.Duration(5*time.Second)
	d := open(t, config)
	for key, n := range map[string]int{"long": 4 * maxWhole, "short": maxWhole} {
		must(t, put(t, d, key, strings.Repeat("x", n), create))
	}
	ctx := storagedrivers.WithOwner(t.Context(), "slow")
	var bodies []io.Closer
	busy := false
	for range defaultConnections {
		body, _, err := d.Open(ctx, "long", all)
		if busy = errors.Is(err, storagedrivers.ErrBusy); busy {
			break
		}
		must(t, err)
		bodies = append(bodies, body)
	}
	if !busy || len(bodies) != 3 {
		t.Errorf("%d readers of one owner have connections", len(bodies))
	}
	for _, owner := range []string{"b", "b", "c"} {
		body, _, err := d.Open(storagedrivers.WithOwner(t.Context(), owner), "long", all)
		if err != nil {
			t.Fatalf("a long object of another owner: %v", err)
		}
		bodies = append(bodies, body)
	}
	for range 8 {
		body, _, err := d.Open(ctx, "short", all)
		must(t, err)
		bodies = append(bodies, body)
	}
	is(t, errors.Join(d.Check(t.Context()), put(t, d, "other", "content", create)), nil)
	opened := make(chan error, 1)
	go func() {
		body, _, err := d.Open(storagedrivers.WithOwner(t.Context(), "d"), "long", all)
		if err == nil {
			err = body.Close()
		}
		opened <- err
	}()
	is(t, bodies[0].Close(), nil)
	is(t, <-opened, nil)
	for _, body := range bodies[1:] {
		is(t, body.Close(), nil)
	}
}
