package media

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestSuitable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		boxes []scale.Box
		want  int // -1 for none
	}{
		{nil, -1},
		{[]scale.Box{{Width: 159, Height: 900}, {Width: 159}, {Height: 159}}, -1},
		{[]scale.Box{{Width: 160, Height: 160}}, 0},
		{[]scale.Box{{Width: 1600}, {Width: 320, Height: 240}, {Width: 320, Height: 320}}, 1},
		{[]scale.Box{{Width: 300, Height: 300}, {Height: 200}, {Width: 100, Height: 100}}, 1},
		{[]scale.Box{{Width: 200, Height: 300}, {Width: 300, Height: 200, Cover: true}}, 0},
	} {
		renditions := make([]aliases.Rendition, len(c.boxes))
		for i, box := range c.boxes {
			renditions[i].Box = box
		}
		got := suitable(renditions)
		if c.want < 0 && got != nil || c.want >= 0 && got != &renditions[c.want] {
			t.Errorf("%v: got %+v, want number %d", c.boxes, got, c.want)
		}
	}
}

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
	long := strings.Repeat("n", 251) + ".jpg" // the name of a variant would be too long
	for i, step := range []struct{ image, store, want string }{
		{"a.jpg", "a.jpg", "a.jpg"}, {"a.jpg", "a.jpg.webp", "a.jpg.webp"}, {"a.jpg", "a.jpg", "a.jpg"}, {long, long, long},
	} {
		_, err := s.Put(t.Context(), step.store, strings.NewReader(step.store), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
		if err != nil {
			t.Fatal(err)
		}
		times[step.store] = time.Unix(int64(i), 0)
		object, err := new(Service).OpenPreview(t.Context(), Preview{Alias: alias, Filename: step.image})
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
