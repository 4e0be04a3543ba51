package serve_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// withSizes is a site with the image aliases sized (negotiates), fresh (overwrites) and own (own
// cache_control), each with pictures of 40 x 30 pixels.
func withSizes(t *testing.T) *site {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
		own := media.AliasOptions{Storage: "main", CacheControl: "private, max-age=90000, immutable"}
		config.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: on("main"), Renditions: sizes, WebP: &media.WebP{}, Negotiate: true}
		config.ImageAliases["fresh"] = &media.ImageAlias{AliasOptions: on("replacing"), Renditions: sizes}
		config.ImageAliases["own"] = &media.ImageAlias{AliasOptions: own, Renditions: sizes}
		config.ImageAliases["gone"] = &media.ImageAlias{AliasOptions: on("broken"), Renditions: sizes}
	})
	for _, alias := range []string{"sized", "fresh", "own"} {
		s.Put(t, "img/"+alias+"/a.png", pngOf(40, 30))
		s.Put(t, "img/"+alias+"/a.gif", gifOf(40, 30))
		s.Put(t, "img/"+alias+"/bad.png", "no picture")
		s.Put(t, "img/"+alias+"/a.svg", svgPicture)
	}
	return s
}

func TestRenditions(t *testing.T) {
	t.Parallel()
	const thumb = "/static/img/sized@thumb/a.png"
	day := "Cache-Control: public, max-age=86400\n"
	run(t, withSizes, []httpCase{
		{Name: "same", Target: thumb, Status: 200, Want: day + "Content-Type: image/png\nVary: Accept\nX-Content-Type-Options: nosniff\nContent-Disposition"},
		{Name: "negotiated", Target: thumb, Header: "Accept: image/webp,*/*", Status: 200, Want: day + "Content-Type: image/webp\nVary: Accept"},
		{Name: "HEAD", Method: http.MethodHead, Target: thumb, Status: 200, Want: "Content-Type: image/png"},
		{Name: "range", Target: thumb, Header: "Range: bytes=0-3", Status: 206, Text: "\x89PNG"},
		{Name: "JPEG", Target: "/static/img/sized@wide/a.png", Header: "Accept: image/webp", Status: 200, Want: "Content-Type: image/jpeg\nVary"},
		{Name: "WebP", Target: "/static/img/sized@modern/a.png", Status: 200, Want: "Content-Type: image/webp\nVary"},
		{Name: "negotiated GIF", Target: "/static/img/sized@thumb/a.gif", Header: "Accept: image/gif,image/webp;q=0.9", Status: 200, Want: "Content-Type: image/webp"},
		{Name: "without negotiation", Target: "/static/img/own@thumb/a.png", Header: "Accept: image/webp", Status: 200, Want: "Content-Type: image/png\nVary\nCache-Control: private, max-age=86400"},
		{Name: "overwriting", Target: "/static/img/fresh@thumb/a.png", Status: 200, Want: "Cache-Control: public, no-cache"},
		{Name: "SVG", Target: "/static/img/sized@thumb/a.svg", Status: 200, Text: svgPicture, Want: day + "Content-Security-Policy: " + sandbox},
		{Name: "no picture", Target: "/static/img/sized@thumb/bad.png", Status: 415, Want: "Cache-Control: no-store\nETag"},
		{Name: "missing", Target: "/static/img/sized@thumb/none.png", Status: 404, Want: "Cache-Control: no-store\nVary: Accept"},
		{Name: "variant", Target: "/static/img/sized@thumb/a.png.webp", Status: 404},
		{Name: "unknown rendition", Target: "/static/img/sized@other/a.png", Status: 404, Want: "Cache-Control: no-store\nVary"},
		{Name: "alias without", Target: "/static/img/content@thumb/a.png", Status: 404},
		{Name: "file", Target: "/static/file/content@thumb/a.png", Status: 404},
		{Name: "storage down", Target: "/static/img/gone@thumb/a.png", Status: 503},
	})
}

func TestRenditionConditions(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	const target = "/static/img/fresh@thumb/a.png"
	first := httpCase{Target: target, Status: 200}.Check(t, s)
	tag := first.Header.Get("ETag")
	httpCase{Target: target, Header: "If-None-Match: " + tag, Status: 304}.Check(t, s)
	s.Put(t, "img/fresh/a.png", pngOf(50, 20))
	second := httpCase{Target: target, Header: "If-None-Match: " + tag, Status: 200}.Check(t, s)
	if second.Body == first.Body || second.Header.Get("ETag") == tag {
		t.Error("the rendition of the replaced picture is served")
	}
}

func TestUploadWithRenditions(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	bearer := "Authorization: Bearer " + s.Token(t) + "\n"
	r := s.Do(t, http.MethodPost, imagePath, multipart+bearer, form(field("alias", "own"), file("New.png", pngOf(40, 30)), file("b.svg", svgPicture)))
	for _, want := range []string{
		`"renditions":{"modern":"http://example.com/static/img/own@modern/new.png","thumb":"http://example.com/static/img/own@thumb/new.png",`,
		`"thumb":"http://example.com/static/img/own@thumb/b.svg"`,
	} {
		if r.Status != http.StatusOK || !strings.Contains(r.Body, want) {
			t.Errorf("status %d, %s, want %s", r.Status, r.Body, want)
		}
	}
	r = httpCase{Target: "/static/img/own@thumb/new.png", Status: 200}.Check(t, s)
	if !strings.HasPrefix(r.Body, "\x89PNG") {
		t.Errorf("it is %.10q", r.Body)
	}
}

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

// TestRenditionModified: after a change of settings, the time of an earlier rendition does not
// count.
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

// TestRenditionWithoutWebP: a client that prefers WebP gets the format of the picture if there can
// be no WebP.
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

// endless is an encoder whose animations play until they may end.
type endless struct {
	webp.Encoder
	end *atomic.Bool
}

func (endless) Memory(webp.Task) int64 { return 0 }

func (e endless) Animate(ctx context.Context, a webp.Animation, _ webp.Options) ([]byte, error) {
	for ended := false; !ended; {
		ended = e.end.Load()
		for range a.Frames {
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return []byte("moving"), nil
}

// longGIF returns an animation whose rendition takes long.
func longGIF(t *testing.T) string {
	t.Helper()
	frame := image.NewPaletted(image.Rect(0, 0, 1024, 1024), color.Palette{color.White, color.Black})
	var file bytes.Buffer
	if err := gif.EncodeAll(&file, &gif.GIF{Image: slices.Repeat([]*image.Paletted{frame}, 9), Delay: make([]int, 9)}); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

// ask requests a rendition for a client.
func ask(s *site, client int, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", client)
	s.Handler.ServeHTTP(w, r)
	return w
}

// TestLongRenditions: while many clients request renditions that take long, other clients get
// theirs, and an account uploads an image. One client has a bound. In the end all are made.
func TestLongRenditions(t *testing.T) {
	t.Parallel()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	end := new(atomic.Bool)
	s := newSiteWith(t, media.Limits{}, func(config *media.Config) {
		config.ImageAliases["moving"] = &media.ImageAlias{
			AliasOptions: on("main"), Renditions: map[string]*media.Rendition{"thumb": {Width: 20, Format: "webp"}},
		}
	})
	service.Of(s.First).Uploader().Derived.Images = render.NewMaker(endless{encoder, end}, render.Limits{Workers: 1, Time: time.Hour})
	const clients, each = 2, 10
	long := longGIF(t)
	target := func(i int) string { return fmt.Sprintf("/static/img/moving@thumb/%d.gif", i) }
	for i := range clients * each {
		s.Put(t, fmt.Sprintf("img/moving/%d.gif", i), long)
	}
	for i := range 5 {
		s.Put(t, fmt.Sprintf("img/moving/%d.png", i), pngOf(40, 30))
	}
	var all sync.WaitGroup
	var refused atomic.Int64
	for i := range clients * each {
		all.Go(func() {
			r := ask(s, i/each, target(i))
			for ; r.Code == http.StatusServiceUnavailable; r = ask(s, i/each, target(i)) {
				if r.Header().Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
				refused.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
			if r.Code != http.StatusOK || r.Body.String() != "moving" {
				t.Errorf("%d: %d with %d bytes", i, r.Code, r.Body.Len())
			}
		})
	}
	for refused.Load() < clients*2 { // those of a client that are over its bound
		time.Sleep(time.Millisecond)
	}
	for i := range 5 {
		if r := ask(s, 200, fmt.Sprintf("/static/img/moving@thumb/%d.png", i)); r.Code != http.StatusOK {
			t.Errorf("the rendition of another client: %d", r.Code)
		}
	}
	bearer := "Authorization: Bearer " + s.Token(t) + "\n"
	if r := s.Do(t, http.MethodPost, imagePath, multipart+bearer, form(file("new.png", pngOf(40, 30)))); r.Status != http.StatusOK {
		t.Errorf("the upload: %d %s", r.Status, r.Body)
	}
	end.Store(true)
	all.Wait()
}
