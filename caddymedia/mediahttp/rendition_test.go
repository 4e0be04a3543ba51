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
		s.put(t, "img/"+alias+"/a.png", pngOf(40, 30))
		s.put(t, "img/"+alias+"/a.gif", gifOf(40, 30))
		s.put(t, "img/"+alias+"/bad.png", "no picture")
		s.put(t, "img/"+alias+"/a.svg", svgPicture)
	}
	return s
}

func TestRenditions(t *testing.T) {
	t.Parallel()
	const thumb = "/static/img/sized@thumb/a.png"
	day := "Cache-Control: public, max-age=86400\n"
	run(t, withSizes, []httpCase{
		{name: "same", target: thumb, status: 200, want: day + "Content-Type: image/png\nVary: Accept\nX-Content-Type-Options: nosniff\nContent-Disposition"},
		{name: "negotiated", target: thumb, header: "Accept: image/webp,*/*", status: 200, want: day + "Content-Type: image/webp\nVary: Accept"},
		{name: "HEAD", method: http.MethodHead, target: thumb, status: 200, want: "Content-Type: image/png"},
		{name: "range", target: thumb, header: "Range: bytes=0-3", status: 206, text: "\x89PNG"},
		{name: "JPEG", target: "/static/img/sized@wide/a.png", header: "Accept: image/webp", status: 200, want: "Content-Type: image/jpeg\nVary"},
		{name: "WebP", target: "/static/img/sized@modern/a.png", status: 200, want: "Content-Type: image/webp\nVary"},
		{name: "GIF", target: "/static/img/sized@thumb/a.gif", header: "Range: bytes=0-3", status: 206, text: "\x89PNG", want: day + "Content-Type: image/png\nVary: Accept\nContent-Disposition"},
		{name: "negotiated GIF", target: "/static/img/sized@thumb/a.gif", header: "Accept: image/gif,image/webp;q=0.9", status: 200, want: "Content-Type: image/webp"},
		{name: "without negotiation", target: "/static/img/own@thumb/a.png", header: "Accept: image/webp", status: 200, want: "Content-Type: image/png\nVary\nCache-Control: private, max-age=86400"},
		{name: "overwriting", target: "/static/img/fresh@thumb/a.png", status: 200, want: "Cache-Control: public, no-cache"},
		{name: "SVG", target: "/static/img/sized@thumb/a.svg", status: 200, text: svgPicture, want: day + "Content-Security-Policy: " + sandbox},
		{name: "no picture", target: "/static/img/sized@thumb/bad.png", status: 415, want: "Cache-Control\nETag"},
		{name: "missing", target: "/static/img/sized@thumb/none.png", status: 404},
		{name: "variant", target: "/static/img/sized@thumb/a.png.webp", status: 404},
		{name: "another type", target: "/static/img/sized@thumb/a.txt", status: 404},
		{name: "no filename", target: "/static/img/sized@thumb/", status: 404},
		{name: "unknown rendition", target: "/static/img/sized@other/a.png", status: 404},
		{name: "no rendition", target: "/static/img/sized@/a.png", status: 404},
		{name: "two renditions", target: "/static/img/sized@thumb@wide/a.png", status: 404},
		{name: "alias without", target: "/static/img/content@thumb/a.png", status: 404},
		{name: "file", target: "/static/file/content@thumb/a.png", status: 404},
		{name: "unknown alias", target: "/static/img/none@thumb/a.png", status: 404},
		{name: "storage down", target: "/static/img/gone@thumb/a.png", status: 503},
	})
}

// TestRenditionKeys: renditions have no addresses but their own.
func TestRenditionKeys(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	httpCase{target: "/static/img/sized@modern/a.png", status: 200}.check(t, s)
	for key := range s.objects(t) {
		if strings.Contains(key, "@renditions") {
			httpCase{target: "/static/" + key, status: 404}.check(t, s)
		}
	}
}

func TestRenditionSizes(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	for target, want := range map[string]image.Point{"thumb": {X: 20, Y: 20}, "wide": {X: 30, Y: 23}} {
		got := httpCase{target: "/static/img/sized@" + target + "/a.png", status: 200}.check(t, s)
		decode := png.DecodeConfig
		if target == "wide" {
			decode = jpeg.DecodeConfig
		}
		config, err := decode(strings.NewReader(got.body))
		if size := image.Pt(config.Width, config.Height); size != want || err != nil {
			t.Errorf("%s is %v, %v, want %v", target, size, err, want)
		}
	}
}

func TestRenditionConditions(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	const target = "/static/img/fresh@thumb/a.png"
	first := httpCase{target: target, status: 200}.check(t, s)
	tag := first.header.Get("ETag")
	httpCase{target: target, header: "If-None-Match: " + tag, status: 304}.check(t, s)
	s.put(t, "img/fresh/a.png", pngOf(50, 20))
	second := httpCase{target: target, header: "If-None-Match: " + tag, status: 200}.check(t, s)
	if second.body == first.body || second.header.Get("ETag") == tag {
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
		s.put(t, fmt.Sprintf("img/sized/%d.png", i), pngOf(200+i, 200))
	}
	var all sync.WaitGroup
	made := make([]bool, clients)
	for i := range clients {
		all.Go(func() {
			r := httptest.NewRecorder() // the storage changes meanwhile
			s.handler.ServeHTTP(r, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/static/img/sized@wide/%d.png", i), http.NoBody))
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
			httpCase{target: fmt.Sprintf("/static/img/sized@wide/%d.png", i), status: 200}.check(t, s)
		}
	}
}

func TestUploadWithRenditions(t *testing.T) {
	t.Parallel()
	s := withSizes(t)
	bearer := "Authorization: Bearer " + s.token(t) + "\n"
	r := s.do(t, http.MethodPost, imagePath, multipart+bearer, form(field("alias", "own"), file("New.png", pngOf(40, 30)), file("b.svg", svgPicture)))
	for _, want := range []string{
		`"renditions":{"modern":"http://example.com/static/img/own@modern/new.png","thumb":"http://example.com/static/img/own@thumb/new.png",`,
		`"thumb":"http://example.com/static/img/own@thumb/b.svg"`,
	} {
		if r.status != http.StatusOK || !strings.Contains(r.body, want) {
			t.Errorf("status %d, %s, want %s", r.status, r.body, want)
		}
	}
	r = httpCase{target: "/static/img/own@thumb/new.png", status: 200}.check(t, s)
	if !strings.HasPrefix(r.body, "\x89PNG") {
		t.Errorf("it is %.10q", r.body)
	}
}
