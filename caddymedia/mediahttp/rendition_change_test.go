package mediahttp_test

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestRenditionRedirect: clients ask again for the address of a rendition in the storage, which
// changes with its picture.
func TestRenditionRedirect(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
		to := &media.Redirect{To: "public", Base: "https://bucket.example", Lifetime: options.Duration(7 * 24 * time.Hour)}
		config.ImageAliases["fresh"] = &media.ImageAlias{
			AliasOptions: media.AliasOptions{Storage: "replacing", Redirect: to}, Renditions: sizes,
		}
	})
	s.Put(t, "img/fresh/a.png", pngOf(40, 30))
	const target = "/static/img/fresh@thumb/a.png"
	r := httpCase{Target: target, Status: 302, Want: "Cache-Control: private, no-cache"}.Check(t, s)
	key, _ := strings.CutPrefix(r.Header.Get("Location"), "https://bucket.example/")
	if content, there := s.Stored(t, key); !there || !strings.HasPrefix(content, "\x89PNG") {
		t.Errorf("%s holds %.10q", key, content)
	}
	s.Put(t, "img/fresh/a.png", pngOf(50, 30))
	if again := (httpCase{Target: target, Status: 302}).Check(t, s); again.Header.Get("Location") == r.Header.Get("Location") {
		t.Error("the address has not changed with the picture")
	}
	httpCase{Method: http.MethodHead, Target: target, Status: 200}.Check(t, s)
}

// TestRenditionModified: after a change of settings, the time of an earlier rendition does not count.
func TestRenditionModified(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	httpCase{
		Target: "/static/img/own@thumb/a.png", Status: 200,
		Header: "If-Modified-Since: " + time.Now().Add(time.Hour).UTC().Format(http.TimeFormat),
	}.Check(t, s)
}

// overtaken removes a rendition when it is open, like a replacement of its picture.
type overtaken struct {
	storagedrivers.Driver
	picture string // the key, once
}

func (d *overtaken) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	if err == nil && d.picture != "" && strings.Contains(key, "@renditions") {
		_, err = d.Put(ctx, d.picture, strings.NewReader(pngOf(50, 20)), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
		d.picture = ""
		if err == nil {
			err = d.Delete(ctx, key, storagedrivers.DeleteOptions{})
		}
	}
	return info, err
}

func TestRenditionReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	var d *overtaken
	s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
		for i := range config.Storages {
			if config.Storages[i].Name == "replacing" {
				d = &overtaken{Driver: config.Storages[i].Driver}
				config.Storages[i].Driver = d
			}
		}
		config.ImageAliases["fresh"] = &media.ImageAlias{AliasOptions: on("replacing"), Renditions: sizes}
	})
	s.Put(t, "img/fresh/a.png", pngOf(40, 30))
	httpCase{Target: "/static/img/fresh@thumb/a.png", Status: 200}.Check(t, s)
	d.picture = "img/fresh/a.png"
	httpCase{Target: "/static/img/fresh@thumb/a.png", Header: "Range: bytes=0-9", Status: 206}.Check(t, s)
}

// vanishing does not find renditions, as if each were removed as soon as it is made.
type vanishing struct{ *memory.Driver }

func (d vanishing) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	if strings.Contains(key, "@renditions") {
		return nil, storagedrivers.Info{}, fs.ErrNotExist
	}
	return d.Driver.Open(ctx, key, rng)
}

func (d vanishing) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if strings.Contains(key, "@renditions") {
		return storagedrivers.Info{}, fs.ErrNotExist
	}
	return d.Driver.Stat(ctx, key)
}

// TestRenditionNeverFound: a rendition that others remove again and again is 503, with its cause.
func TestRenditionNeverFound(t *testing.T) {
	t.Parallel()
	d := vanishing{memory.New()}
	s := newSiteOn(t, d, media.Limits{}, func(config *media.Config) {
		config.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: on("main"), Renditions: sizes}
	})
	if _, err := d.Put(t.Context(), "img/sized/a.png", strings.NewReader(pngOf(40, 30)), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/static/img/sized@thumb/a.png", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", w.Code)
	}
}

// greedy is an encoder that needs more memory than there is.
type greedy struct{ webp.Encoder }

func (greedy) Memory(webp.Task) int64 { return 1 << 40 }

// TestRenditionWithoutWebP: a client that prefers WebP gets the format of the picture if there can be
// no WebP.
func TestRenditionWithoutWebP(t *testing.T) {
	t.Parallel()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
		config.ImageAliases["sized"] = &media.ImageAlias{
			AliasOptions: on("main"), WebP: &media.WebP{}, Negotiate: true, Renditions: map[string]*media.Rendition{"thumb": {Width: 20}},
		}
	})
	service.Of(s.First).Uploader().Derived.Images = render.NewMaker(greedy{encoder}, render.Limits{})
	s.Put(t, "img/sized/a.png", pngOf(40, 30))
	httpCase{
		Target: "/static/img/sized@thumb/a.png", Header: "Accept: image/webp", Status: 200, Want: "Content-Type: image/png\nVary: Accept",
	}.Check(t, s)
}
