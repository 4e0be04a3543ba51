package resumable

import (
	"io"
	"log/slog"
	"runtime"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// heap is an endless reader, and a writer, that measures the heap with each MiB.
type heap struct {
	bytes int // since the last time
	most  uint64
}

func (h *heap) Read(p []byte) (int, error) {
	clear(p)
	return h.Write(p)
}

// Write measures too.
func (h *heap) Write(p []byte) (int, error) {
	if h.bytes += len(p); h.bytes >= 1<<20 {
		h.bytes = 0
		h.measure()
	}
	return len(p), nil
}

func (h *heap) measure() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
	return m.HeapAlloc
}

// TestMemory: an upload of 256 MiB needs less than 32 MiB of the heap. It is not parallel, because
// other tests need memory too.
func TestMemory(t *testing.T) { //nolint:paralleltest // see above
	if testing.Short() {
		t.Skip("writing 256 MiB takes seconds")
	}
	const size, limit = 256 << 20, 32 << 20
	for name, driver := range map[string]func(d *local.Driver) storagedrivers.Driver{
		"growing": func(d *local.Driver) storagedrivers.Driver { return d },
		"pieces":  func(d *local.Driver) storagedrivers.Driver { return struct{ storagedrivers.Driver }{d} },
	} {
		t.Run(name, func(t *testing.T) {
			d := local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
			s := storeOn(t, driver(d))
			u := s.create(t, Record{Owner: owner, Kind: "file", Filename: "a.bin", Length: size})
			runtime.GC()
			var h heap
			before := h.measure()
			err := u.Append(t.Context(), body(0, io.LimitReader(&h, size)))
			if err != nil || !u.Complete() {
				t.Fatalf("offset %d, error %v", u.Offset(), err)
			}
			staged, err := u.storage.StageGrown(t.Context(), nil, u.objects()...)
			if err != nil {
				t.Fatal(err)
			}
			defer staged.Close()
			if n, err := io.Copy(&h, staged); n != size || err != nil {
				t.Errorf("read %d bytes, error %v", n, err)
			}
			used := h.most - before
			t.Logf("%d KiB at most", used>>10)
			if used >= limit {
				t.Errorf("%d MiB were needed", used>>20)
			}
		})
	}
}
