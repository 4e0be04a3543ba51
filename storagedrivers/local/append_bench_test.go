package local

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// BenchmarkAppend stores 1 GiB by Stage and Commit, and by Append and Flush, in turn, because the
// speed of a disk varies. The metric append/stage is the ratio of the median speeds.
func BenchmarkAppend(b *testing.B) {
	const size, piece = 1 << 30, 256 << 10
	data := make([]byte, piece)
	rand.Read(data)
	d := New(Config{Root: b.TempDir()}, slog.New(slog.DiscardHandler))
	b.Cleanup(func() { d.Close() })
	fill := func(write func([]byte) (int, error)) {
		for range size / piece {
			_, err := write(data)
			test.Must(b, err)
		}
	}
	staging := func(ctx context.Context) error {
		st, err := d.Stage(ctx)
		if err != nil {
			return err
		}
		defer st.Close()
		fill(st.Write)
		err = commitOne(ctx, d, st, "object", storagedrivers.PutOptions{})
		return err
	}
	appending := func(ctx context.Context) error {
		w, err := d.Append(ctx, "object", 0)
		if err != nil {
			return err
		}
		defer w.Close()
		fill(w.Write)
		return w.Flush(ctx)
	}
	timed := func(store func(context.Context) error) time.Duration {
		begin := time.Now()
		test.Must(b, store(b.Context()))
		took := time.Since(begin)
		test.Must(b, d.Delete(b.Context(), "object", storagedrivers.DeleteOptions{}))
		return took
	}
	var staged, appended []time.Duration
	for i := range 2 * b.N {
		if i%4 == 0 || i%4 == 3 { // neither always comes first
			staged = append(staged, timed(staging))
		} else {
			appended = append(appended, timed(appending))
		}
	}
	b.SetBytes(2 * size)
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return all[len(all)/2].Seconds()
	}
	b.ReportMetric(median(staged)/median(appended), "append/stage")
}
