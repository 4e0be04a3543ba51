package ftp

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestNoConnectionIsFree(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	config := f.config()
	config.Connections = 1
	d := open(t, config)
	test.Must(t, put(t, d, "key", strings.Repeat("x", maxWhole+1), create))
	body, _, err := d.Open(t.Context(), "key", all)
	test.Must(t, err)
	patience := d.config.Timeout
	d.config.Timeout = options.Duration(50 * time.Millisecond)
	_, err = d.Stat(t.Context(), "key")
	d.config.Timeout = patience
	test.Is(t, err, storagedrivers.ErrBusy)
	test.Is(t, err, os.ErrDeadlineExceeded) // it is not repeated
	_, err = io.Copy(io.Discard, body)
	test.Is(t, err, nil)
	_, err = d.Stat(t.Context(), "key")
	test.Is(t, err, nil, "stat beside a reader at its end")
	test.Is(t, body.Close(), nil)
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
