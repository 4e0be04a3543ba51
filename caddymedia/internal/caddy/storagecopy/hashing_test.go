package storagecopy

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestHashing: the sum covers the whole content, in whatever order it is read.
func TestHashing(t *testing.T) {
	t.Parallel()
	const content = "0123456789abcdefghij"
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	type step struct {
		whence int // -1 reads
		n      int64
	}
	read := func(n int64) step { return step{-1, n} }
	for name, steps := range map[string][]step{
		"at once":            {read(20)},
		"not at all":         {},
		"measured before":    {{io.SeekEnd, 0}, {io.SeekStart, 0}, read(20)},
		"in part":            {read(7)},
		"sent again":         {read(12), {io.SeekStart, 0}, read(5), read(15)},
		"sent twice":         {read(20), {io.SeekStart, 0}, read(20)},
		"back a little":      {read(12), {io.SeekCurrent, -4}, read(12)},
		"with a gap":         {read(3), {io.SeekStart, 10}, read(10)},
		"gap that is filled": {read(3), {io.SeekStart, 10}, read(10), {io.SeekStart, 0}, read(20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var counted int64
			h := newHashing(strings.NewReader(content), func(n int64) { counted += n })
			for _, s := range steps {
				var err error
				if s.whence < 0 {
					_, err = io.ReadFull(h, make([]byte, s.n))
				} else {
					_, err = h.Seek(s.n, s.whence)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			got, err := h.sum()
			if err != nil || got != want || counted != int64(len(content)) {
				t.Errorf("%s of %d bytes, error %v", got, counted, err)
			}
		})
	}
}
