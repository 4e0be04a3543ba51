package serve_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// expiring returns a site with items of an hour in the image alias sized, also private as secret,
// and in the file alias away, which redirects. They were stored 50 minutes ago.
func expiring(t *testing.T) *site {
	t.Helper()
	driver := memory.New()
	s := newSiteOn(t, driver, media.Limits{}, func(c *media.Config) {
		hour := func(o media.AliasOptions) media.AliasOptions {
			o.Expires = "1h"
			return o
		}
		c.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: hour(on("main")), Renditions: sizes, WebP: &media.WebP{}, Negotiate: true}
		c.ImageAliases["young"] = &media.ImageAlias{AliasOptions: hour(media.AliasOptions{Storage: "main", CacheControl: "max-age=60"})}
		c.FileAliases["away"] = &media.FileAlias{AliasOptions: hour(media.AliasOptions{
			Storage: "main", Redirect: &media.Redirect{To: "public", Base: "https://bucket.example", Lifetime: options.Duration(24 * time.Hour)},
		})}
	})
	driver.Now = s.Now
	for _, key := range []string{"img/sized/a.png", "img/sized/a.png.webp", "img/young/a.png"} {
		s.Put(t, key, pngOf(40, 30))
	}
	s.Put(t, "img/sized/a.svg", svgPicture)
	s.Put(t, "file/away/a.txt", "text")
	s.Passed.Store(int64(50 * time.Minute))
	return s
}

// expiringTargets are the addresses of the site, with the Cache-Control ten minutes before the end.
var expiringTargets = map[string]string{
	"/static/img/sized/a.png": "public, max-age=600", "/static/img/sized/a.png.webp": "public, max-age=600",
	"/static/img/sized/a.svg": "public, max-age=600", "/static/img/sized@thumb/a.png": "public, max-age=600",
	"/static/img/sized@thumb/a.svg": "public, max-age=600", "/static/img/young/a.png": "max-age=60",
}

// TestExpired: an item, its variant and its renditions are served until the end of the item, and no
// cache keeps them longer. From its end on they are gone, although the storage has them, and
// nothing is made of them.
func TestExpired(t *testing.T) {
	t.Parallel()
	s := expiring(t)
	for target, cached := range expiringTargets {
		httpCase{Target: target, Status: 200, Want: "Cache-Control: " + cached}.Check(t, s)
	}
	s.Put(t, "img/sized/a.png.webp", pngOf(40, 30)) // made later than the image
	s.Passed.Add(int64(10 * time.Minute))
	before := len(s.Objects(t))
	for target := range expiringTargets {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			httpCase{Method: method, Target: target, Header: "Accept: image/webp\nIf-None-Match: *", Status: 410, Want: "Cache-Control: no-store\nETag"}.Check(t, s)
		}
	}
	httpCase{Target: "/static/img/sized@modern/a.png", Status: 410}.Check(t, s)
	httpCase{Target: "/static/img/sized/none.png", Status: 404}.Check(t, s)
	if after := len(s.Objects(t)); after != before {
		t.Errorf("%d objects, before %d", after, before)
	}
}

// TestExpiredElsewhere: a redirect leads to no address in the storage that outlives the item.
func TestExpiredElsewhere(t *testing.T) {
	t.Parallel()
	s := expiring(t)
	const target = "/static/file/away/a.txt"
	httpCase{Target: target, Status: 302, Want: "Cache-Control: private, max-age=300"}.Check(t, s)
	s.Passed.Add(int64(10*time.Minute - time.Millisecond))
	httpCase{Target: target, Status: 200, Want: "Cache-Control: public, max-age=0"}.Check(t, s)
	s.Passed.Add(int64(time.Millisecond))
	httpCase{Target: target, Status: 410, Want: "Location"}.Check(t, s)
}
