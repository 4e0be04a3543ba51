package source_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/storagedrivers/internal/source"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func TestReader(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	why := errors.New("why")
	over, stop := context.WithCancelCause(t.Context())
	stop(why)
	for name, tt := range map[string]struct {
		ctx  context.Context //nolint:containedctx // the case is about it
		r    io.Reader
		size int64
		err  error
	}{
		"whole":        {t.Context(), strings.NewReader("whole"), 5, nil},
		"broken":       {t.Context(), io.MultiReader(strings.NewReader("br"), iotest.ErrReader(broken)), 2, broken},
		"cut short":    {t.Context(), iotest.ErrReader(io.ErrUnexpectedEOF), 0, io.ErrUnexpectedEOF},
		"caller left":  {gone, strings.NewReader("text"), 0, context.Canceled},
		"with a cause": {over, strings.NewReader("text"), 0, why},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := source.New(tt.ctx, tt.r)
			for range 2 { // a library may ask again
				_, err := io.Copy(io.Discard, r)
				test.Is(t, err, tt.err, "reading")
			}
			if r.Size() != tt.size || !errors.Is(r.Err(), tt.err) {
				t.Errorf("%d bytes, error %v, want %d, %v", r.Size(), r.Err(), tt.size, tt.err)
			}
			if _, ok := any(r).(io.Closer); ok {
				t.Error("it can be closed")
			}
		})
	}
}
