package resumable

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestEndMultipart: an end that is cut anywhere, as by the end of the process, can be repeated, and then leaves nothing.
func TestEndMultipart(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for cut := int64(1); ; cut++ {
		d := memory.New()
		var armed atomic.Bool
		var removals atomic.Int64
		d.Fail = func(op, key string) error {
			if armed.Load() && op == "delete" && strings.HasPrefix(key, openFolder) && removals.Add(1) >= cut {
				return broken
			}
			return nil
		}
		s := storeOn(t, d)
		m := s.create(t, Record{Owner: owner, Kind: "file", Filename: "a.txt", Partial: true, Exact: true, Length: Unknown})
		for number := range 3 {
			part := s.create(t, Record{
				Owner: owner, Kind: "file", Filename: "a.txt", Partial: true, Multipart: m.ID, Number: number + 1, Length: 5,
			})
			part.add(t, 0, "hello")
		}
		armed.Store(true)
		err := s.find(t, m).EndMultipart(t.Context())
		armed.Store(false)
		if err == nil {
			if left := s.keys(t); len(left) > 0 || removals.Load() < 4 {
				t.Errorf("after %d removals: %q", removals.Load(), left)
			}
			return
		}
		if err := s.find(t, m).EndMultipart(t.Context()); err != nil {
			t.Errorf("again after removal %d: %v", cut, err)
		}
		if left := s.keys(t); len(left) > 0 {
			t.Errorf("cut at removal %d: %q", cut, left)
		}
	}
}
