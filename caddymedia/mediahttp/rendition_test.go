package mediahttp_test

import (
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/caddymedia/media"
)

// sizes are the renditions of the aliases sized, fresh and own of withSizes.
var sizes = map[string]*media.Rendition{
	"thumb":  {Width: 20, Height: 20, Fit: "cover"},
	"wide":   {Width: 30, Format: "jpeg"},
	"modern": {Width: 30, Format: "webp"},
}

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
		{Name: "GIF", Target: "/static/img/sized@thumb/a.gif", Header: "Range: bytes=0-3", Status: 206, Text: "\x89PNG", Want: day + "Content-Type: image/png\nVary: Accept\nContent-Disposition"},
		{Name: "negotiated GIF", Target: "/static/img/sized@thumb/a.gif", Header: "Accept: image/gif,image/webp;q=0.9", Status: 200, Want: "Content-Type: image/webp"},
		{Name: "without negotiation", Target: "/static/img/own@thumb/a.png", Header: "Accept: image/webp", Status: 200, Want: "Content-Type: image/png\nVary\nCache-Control: private, max-age=86400"},
		{Name: "overwriting", Target: "/static/img/fresh@thumb/a.png", Status: 200, Want: "Cache-Control: public, no-cache"},
		{Name: "SVG", Target: "/static/img/sized@thumb/a.svg", Status: 200, Text: svgPicture, Want: day + "Content-Security-Policy: " + sandbox},
		{Name: "no picture", Target: "/static/img/sized@thumb/bad.png", Status: 415, Want: "Cache-Control\nETag"},
		{Name: "missing", Target: "/static/img/sized@thumb/none.png", Status: 404},
		{Name: "variant", Target: "/static/img/sized@thumb/a.png.webp", Status: 404},
		{Name: "another type", Target: "/static/img/sized@thumb/a.txt", Status: 404},
		{Name: "no filename", Target: "/static/img/sized@thumb/", Status: 404},
		{Name: "unknown rendition", Target: "/static/img/sized@other/a.png", Status: 404},
		{Name: "no rendition", Target: "/static/img/sized@/a.png", Status: 404},
		{Name: "two renditions", Target: "/static/img/sized@thumb@wide/a.png", Status: 404},
		{Name: "alias without", Target: "/static/img/content@thumb/a.png", Status: 404},
		{Name: "file", Target: "/static/file/content@thumb/a.png", Status: 404},
		{Name: "unknown alias", Target: "/static/img/none@thumb/a.png", Status: 404},
		{Name: "storage down", Target: "/static/img/gone@thumb/a.png", Status: 503},
	})
}

// TestRenditionKeys: renditions have no addresses but their own.
func TestRenditionKeys(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	httpCase{Target: "/static/img/sized@modern/a.png", Status: 200}.Check(t, s)
	for key := range s.Objects(t) {
		if strings.Contains(key, "@renditions") {
			httpCase{Target: "/static/" + key, Status: 404}.Check(t, s)
		}
	}
}

func TestRenditionSizes(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	for target, want := range map[string]image.Point{"thumb": {X: 20, Y: 20}, "wide": {X: 30, Y: 23}} {
		got := httpCase{Target: "/static/img/sized@" + target + "/a.png", Status: 200}.Check(t, s)
		decode := png.DecodeConfig
		if target == "wide" {
			decode = jpeg.DecodeConfig
		}
		config, err := decode(strings.NewReader(got.Body))
		if size := image.Pt(config.Width, config.Height); size != want || err != nil {
			t.Errorf("%s is %v, %v, want %v", target, size, err, want)
		}
	}
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

// TestRenditionFlood: of many clients that want new renditions, each gets its own, or 503 with a
// time to try again.
func TestRenditionFlood(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{ImageWorkers: 1, ImageQueue: 2}, func(config *media.Config) {
		config.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: on("main"), Renditions: sizes}
	})
	const clients = 100
	for i := range clients {
		s.Put(t, fmt.Sprintf("img/sized/%d.png", i), pngOf(200+i, 200))
	}
	var all sync.WaitGroup
	made := make([]bool, clients)
	for i := range clients {
		all.Go(func() {
			r := httptest.NewRecorder() // the storage changes meanwhile
			s.Handler.ServeHTTP(r, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/static/img/sized@wide/%d.png", i), http.NoBody))
			switch r.Code {
			case http.StatusOK:
				config, err := jpeg.DecodeConfig(r.Body)
				want := scale.Box{Width: 30}.View(200+i, 200).Size
				if got := image.Pt(config.Width, config.Height); got != want || err != nil {
					t.Errorf("%d is %v, %v, want %v", i, got, err, want)
				}
				made[i] = true
			case http.StatusServiceUnavailable:
				if r.Header().Get("Retry-After") == "" {
					t.Errorf("%d: 503 without Retry-After", i)
				}
			default:
				t.Errorf("%d: status %d", i, r.Code)
			}
		})
	}
	all.Wait()
	for i := range clients {
		if !made[i] {
			httpCase{Target: fmt.Sprintf("/static/img/sized@wide/%d.png", i), Status: 200}.Check(t, s)
		}
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
