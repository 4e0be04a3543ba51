package upload

import (
	"context"
	"errors"
	"image/color"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// withRenditions returns an uploader with [derivedtest.WithRenditions].
func withRenditions(t testing.TB, s *storagedrivers.Storage) (*Uploader, *item.Alias) {
	t.Helper()
	alias := derivedtest.WithRenditions(t, s)
	u := newUploader(alias)
	u.Staging = NewStaging(1<<30, 1<<20)
	return u, alias
}

func wantRendition(t testing.TB, u *Uploader, rendition, filename, want string) {
	t.Helper()
	alias := u.Aliases[item.Image][item.DefaultAlias]
	derivedtest.WantRendition(t, u.Derived, derivedtest.Request(t, alias, rendition, filename), want)
}

// TestRenditionsOfOneName: images of one name in a request have renditions of their own.
func TestRenditionsOfOneName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		u, alias := withRenditions(t, open(t, nil))
		storeImages(t, u, file("a.png", pngOf(red)), file("a.png", pngOf(blue)))
		wantRenditions(t, alias, "pics@renditions/1/a-1795176000.png/soon.webp", "pics@renditions/1/a.png/soon.webp")
		wantRendition(t, u, "soon", "a.png", webpOf(red))
		wantRendition(t, u, "soon", "a-1795176000.png", webpOf(blue))
	})
}

func TestRenditions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		u, alias := withRenditions(t, open(t, nil))
		w := watch(u)
		items := storeImages(t, u, field("sub_folder", "in/here"), file("a.png", pngOf(red)))
		want := map[string]string{
			"later": "https://cdn.example/static/img/content@later/in/here/a.png",
			"soon":  "https://cdn.example/static/img/content@soon/in/here/a.png",
		}
		if !maps.Equal(items[0].Renditions, want) {
			t.Errorf("renditions %v, want %v", items[0].Renditions, want)
		}
		wantRenditions(t, alias, "pics@renditions/3/in/here/a.png/soon.webp")
		wantRendition(t, u, "soon", "in/here/a.png", webpOf(red))
		wantRendition(t, u, "later", "in/here/a.png", webpOf(red))
		wantRenditions(t, alias, "pics@renditions/3/in/here/a.png/later.webp", "pics@renditions/3/in/here/a.png/soon.webp")
		if want := []string{"soon made", "later made"}; !slices.Equal(w.renditions, want) {
			t.Errorf("the observer was told of %q, want %q", w.renditions, want)
		}
		alias.Renditions = alias.Renditions[:1] // after a change of the settings
		if err := u.Delete(t.Context(), alias, "in/here/a.png", item.Actor{}); err != nil {
			t.Error(err)
		}
		wantContents(t, alias.Storage, nil)
	})
}

// TestRenditionOfReplaced: a rendition never outlives its image.
func TestRenditionOfReplaced(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		u, alias := withRenditions(t, open(t, nil))
		alias.Overwrite = true
		for _, c := range []color.NRGBA{red, green, blue} {
			storeImages(t, u, file("a.png", pngOf(c)))
			wantRenditions(t, alias, "pics@renditions/1/a.png/soon.webp")
			wantRendition(t, u, "soon", "a.png", webpOf(c))
			wantRendition(t, u, "later", "a.png", webpOf(c))
		}
	})
}

// TestRenditionNotStored: an upload succeeds without its eager renditions, if there is no memory
// for them, or if the storage refuses them. They are made on request.
func TestRenditionNotStored(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int64{"no memory": 0, "no space": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			full := memory > 0
			u, alias := withRenditions(t, onMemory(t, func(op, key string) error {
				if op == "put" && full && strings.Contains(key, "@renditions/") {
					return storagedrivers.ErrNoSpace
				}
				return nil
			}))
			u.Staging = NewStaging(memory, 1<<20)
			storeImages(t, u, file("a.png", pngOf(red)))
			r := derivedtest.Request(t, alias, "soon", "a.png")
			if _, err := derivedtest.Opened(t, u.Derived, r); full && !errors.Is(err, storagedrivers.ErrNoSpace) {
				t.Errorf("error %v", err)
			} else if full {
				wantRenditions(t, alias)
			}
			full = false
			wantRendition(t, u, "soon", "a.png", webpOf(red))
		})
	}
}

// hungry is an encoder that needs much memory for wide images.
type hungry struct{ derivedtest.Painter }

func (hungry) Memory(task webp.Task) int64 { return int64(task.Width) << 25 }

// TestImpossibleRendition: a rendition that an image cannot have hides no other.
func TestImpossibleRendition(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	alias.Renditions = []item.Rendition{
		{Name: "large", Box: scale.Box{Width: 100}, Format: imaging.WebP},
		{Name: "small", Box: scale.Box{Width: 1}, Format: imaging.WebP},
	}
	u.Derived.Images = render.NewMaker(hungry{}, render.Limits{Memory: 100 << 20})
	items, failures := uploadImages(t, u, file("a.png", pngOf(red)))
	if failures != nil || !slices.Equal(slices.Collect(maps.Keys(items[0].Renditions)), []string{"small"}) {
		t.Errorf("renditions %v, %v", items, failures)
	}
}

// TestRenditionOfDeleted: an item that is deleted right after its commit gets no renditions.
func TestRenditionOfDeleted(t *testing.T) {
	t.Parallel()
	var u *Uploader
	var alias *item.Alias
	deleted := make(chan error, 1)
	s := onMemory(t, func(op, key string) error {
		if op == "put" && strings.Contains(key, "@renditions") {
			go func() { deleted <- u.Delete(context.Background(), alias, "a.png", item.Actor{}) }()
			time.Sleep(20 * time.Millisecond) // the deletion waits for the name
		}
		return nil
	})
	u, alias = withRenditions(t, s)
	storeImages(t, u, file("a.png", pngOf(red)))
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	wantContents(t, s, nil)
}

// TestRenditionOfCallerThatIsGone: an item that is committed gets its renditions, even if the
// caller leaves then.
func TestRenditionOfCallerThatIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		ctx, cancel := context.WithCancel(t.Context())
		committed := false
		u, alias := withRenditions(t, open(t, func(op, _ string) error {
			if committed {
				cancel()
			}
			committed = committed || op == "put" || op == "commit"
			return nil
		}))
		body := strings.NewReader(string(formBody(file("a.png", pngOf(red)))))
		items, failures := u.Upload(ctx, Upload{Request: Request{Kind: item.Image}}, Form(body, boundary))
		if checked(t, items, failures); failures != nil || ctx.Err() == nil {
			t.Fatal(failures, ctx.Err())
		}
		wantRenditions(t, alias, "pics@renditions/1/a.png/soon.webp")
	})
}
