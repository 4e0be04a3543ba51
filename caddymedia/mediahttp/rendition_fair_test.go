package mediahttp_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
)

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

// TestLongRenditions: while many clients request renditions that take long, other clients get theirs,
// and an account uploads an image. One client has a bound. In the end all are made.
func TestLongRenditions(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
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
			service.Of(s.First).Uploader().Derived.Images = render.NewMaker(endless{encoder, end}, render.Limits{Workers: workers, Time: time.Hour})
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
		})
	}
}
