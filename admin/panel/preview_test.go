package panel

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// dated is a driver whose objects have given modification times.
type dated struct {
	*memory.Driver
	times map[string]time.Time
}

func (d dated) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ModTime = d.times[key]
	return info, err
}

func (d dated) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	info.ModTime = d.times[key]
	return body, info, err
}

// TestPreviewOfVariant: the preview is the variant, or the image itself if the variant is older.
func TestPreviewOfVariant(t *testing.T) {
	t.Parallel()
	times := map[string]time.Time{}
	s := storagedrivers.New("dated", dated{memory.New(), times}, storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	alias := &aliases.Alias{Kind: aliases.Image, Name: "content", Storage: s, Extensions: map[string]bool{"jpg": true}}
	for i, step := range []struct{ store, want string }{
		{"a.jpg", "a.jpg"}, {"a.jpg.webp", "a.jpg.webp"}, {"a.jpg", "a.jpg"},
	} {
		_, err := s.Put(t.Context(), step.store, strings.NewReader(step.store), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
		if err != nil {
			t.Fatal(err)
		}
		times[step.store] = time.Unix(int64(i), 0)
		object, err := openPreview(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), alias, "a.jpg")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(object)
		if err != nil || string(got) != step.want {
			t.Errorf("step %d shows %q (%v), want %q", i, got, err, step.want)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
}
