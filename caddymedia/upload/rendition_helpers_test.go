package upload

import (
	"context"
	"errors"
	"image"
	"io"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/storagedrivers"
)

// withRenditions returns an alias with two renditions as WebP: "soon" is made with the upload,
// "later" on request.
func withRenditions(t testing.TB, s *storagedrivers.Storage) (*Uploader, *aliases.Alias) {
	t.Helper()
	alias := pictures(t, s)
	alias.Prefix, alias.WebP = "pics", nil
	alias.Renditions = []aliases.Rendition{
		{Name: "later", Box: scale.Box{Width: 4}, Format: imaging.WebP},
		{Name: "soon", Box: scale.Box{Width: 6}, Format: imaging.WebP, Eager: true},
	}
	u := newUploader(alias)
	u.Staging = NewStaging(1<<30, 1<<20)
	return u, alias
}

// countingPainter counts its pictures, and calls before for each of them.
type countingPainter struct {
	painter
	painted *atomic.Int64
	before  func()
}

func (p countingPainter) Encode(ctx context.Context, img image.Image, opts webp.Options) ([]byte, error) {
	p.painted.Add(1)
	if p.before != nil {
		p.before()
	}
	return p.painter.Encode(ctx, img, opts)
}

// countPainted makes u use a counting painter.
func countPainted(u *Uploader, before func()) *atomic.Int64 {
	painted := new(atomic.Int64)
	u.Derived.Images = render.NewMaker(countingPainter{painted: painted, before: before}, render.Limits{})
	return painted
}

// request returns a request for a rendition of a picture.
func request(t testing.TB, alias *aliases.Alias, rendition, filename string) *derived.RenditionRequest {
	t.Helper()
	r, ok := alias.Rendition(rendition)
	if !ok {
		t.Fatalf("there is no rendition %q", rendition)
	}
	return &derived.RenditionRequest{Alias: alias, Rendition: r, Filename: filename}
}

// opened returns the content of a rendition, made if needed, as a request for it does.
func opened(t testing.TB, u *Uploader, r *derived.RenditionRequest) (string, error) {
	t.Helper()
	for range rounds {
		object, err := r.OpenRendition(t.Context(), r.Alias.Storage.OpenSeeker)
		if errors.Is(err, derived.ErrNotMade) {
			if err := u.Derived.MakeRendition(t.Context(), r); err != nil {
				return "", err
			}
			continue
		}
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(object)
		return string(content), errors.Join(err, object.Close())
	}
	return "", derived.ErrNotMade
}

func wantRendition(t testing.TB, u *Uploader, r *derived.RenditionRequest, want string) {
	t.Helper()
	if got, err := opened(t, u, r); got != want || err != nil {
		t.Errorf("%s of %s is %q, %v, want %q", r.Rendition.Name, r.Filename, got, err, want)
	}
}

// hashes are the parts of a key that depend on settings and generation.
var hashes = regexp.MustCompile(`\.[0-9a-f]{8}\.[0-9a-f]{16}\.`)

// renditionsIn returns the keys of stored renditions, without hashes.
func renditionsIn(t testing.TB, alias *aliases.Alias) []string {
	t.Helper()
	var keys []string
	for info, err := range alias.Storage.All(context.Background(), alias.RenditionRoot()+"/") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, hashes.ReplaceAllString(info.Key, "."))
	}
	return keys
}

func wantRenditions(t testing.TB, alias *aliases.Alias, want ...string) {
	t.Helper()
	if got := renditionsIn(t, alias); !slices.Equal(got, want) {
		t.Errorf("stored renditions %q, want %q", got, want)
	}
}

// rounds is how often package derived makes a variant again.
const rounds = 5
