package testservice

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Sizes are renditions of aliases.
var Sizes = map[string]*media.Rendition{
	"thumb":  {Width: 20, Height: 20, Fit: "cover"},
	"wide":   {Width: 30, Format: "jpeg"},
	"modern": {Width: 30, Format: "webp"},
}

// WithItems returns a site whose accounts may do everything, with some items: that of OtherKey only
// in the alias "two".
func WithItems(t *testing.T) *Site {
	t.Helper()
	return WithItemsOn(t, memory.New())
}

// WithItemsOn is WithItems on a backend.
func WithItemsOn(t *testing.T, backend storagedrivers.Driver) *Site {
	t.Helper()
	s := NewOn(t, backend, media.Limits{}, func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"upload", "list", "delete", "replace", "move", "copy", "import"}
		}
		c.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: On("main"), Renditions: Sizes, WebP: &media.WebP{}}
	})
	for _, key := range []string{
		"file/one/a.txt", "file/one/b.txt", "file/one/sub/c.txt", "file/one/sub/deep/d.txt", "file/exact/a b%2F?#.txt", "file/two/a.txt",
		"img/sized/a.png", "img/sized/a.png.webp", "img/sized/b.png", "img/sized@renditions/1/a.png/thumb.x.png", "file/replacing/a.txt",
		"file/one/@uploads/x.txt",
	} {
		s.Put(t, key, "content of "+key)
	}
	return s
}

// AsAlice and AsBob are headers with the user of a test, in place of a login of the server.
const (
	AsAlice = "Test-User: alice\n"
	AsBob   = "Test-User: bob\n"
)

// WithUsers returns a site with the account "members" of users, who may do everything in some
// aliases, and with some items, of alice, of bob and of others.
func WithUsers(t *testing.T) *Site {
	t.Helper()
	return WithUsersAnd(t, media.Limits{}, func(*media.Config) {})
}

// WithUsersAnd is WithUsers with a changed configuration.
func WithUsersAnd(t *testing.T, limits media.Limits, change func(*media.Config)) *Site {
	t.Helper()
	s := NewWith(t, limits, func(c *media.Config) {
		c.FileAliases["private"] = &media.FileAlias{AliasOptions: On("main")}
		c.FileAliases["private"].Private = &media.Private{}
		c.Accounts["members"] = &media.Account{
			Trust: "{http.auth.user.id}", SubFolder: "users/{http.auth.user.id}", Aliases: []string{"one", "exact", "replacing", "private"},
			May: []string{"upload", "list", "delete", "replace", "move", "copy", "import", "sign"},
		}
		change(c)
	})
	s.Handler = mediahttp.New(s, mediahttp.Options{
		Log: slog.New(s.Log), TrustedProxy: func(r *http.Request) bool { return r.Header.Get("Test-Proxy") != "" },
		User: func(r *http.Request, trust string) string {
			if trust != "{http.auth.user.id}" {
				t.Errorf("the placeholder is %s", trust)
			}
			return r.Header.Get("Test-User")
		},
	})
	for _, alias := range []string{"one", "exact", "replacing"} {
		for _, name := range []string{"users/alice/a.txt", "users/alice/sub/b.txt", "users/bob/a.txt", "users/alice2/a.txt", "a.txt"} {
			s.Put(t, "file/"+alias+"/"+name, name)
		}
	}
	return s
}

// Importing returns a constructor of sites whose account has these rights, with $REMOTE as the
// address of a server that they may fetch from. Its addresses are /text.txt, /large.txt, /slow.txt,
// /image, /away (to another network) and some that fail.
func Importing(may ...string) func(*testing.T) *Site {
	return func(t *testing.T) *Site {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/text.txt":
				io.WriteString(w, "text")
			case "/image":
				io.WriteString(w, Samples["png"])
			case "/large.txt":
				io.WriteString(w, "more than ten bytes")
			case "/away":
				http.Redirect(w, r, "http://10.1.2.3/a.txt", http.StatusFound)
			case "/slow.txt":
				<-r.Context().Done()
			default:
				http.NotFound(w, r)
			}
		}))
		t.Cleanup(server.Close)
		port := netip.MustParseAddrPort(server.Listener.Addr().String()).Port()
		s := NewWith(t, media.Limits{MaxFiles: 3, MaxFields: 1}, func(c *media.Config) {
			c.Accounts[SomeKey].May = may
			c.Downloads = media.Downloads{
				Allow: []string{"127.0.0.1"}, Ports: []string{strconv.Itoa(int(port)), "80"}, Timeout: options.Duration(300 * time.Millisecond),
			}
		})
		s.Vars = []string{"$REMOTE", server.URL}
		return s
	}
}

// WithVersions is a site with an item of an alias that overwrites, which has the variables $TAG,
// $TIME and $BEFORE, and one of an alias that does not.
func WithVersions(t *testing.T) *Site {
	t.Helper()
	s := NewWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts[SomeKey].May = []string{"upload", "delete", "move", "replace"}
		c.ImageAliases["over"] = &media.ImageAlias{AliasOptions: media.AliasOptions{Storage: "replacing"}, WebP: &media.WebP{}}
	})
	info := s.Put(t, "file/replacing/a.txt", "old")
	s.Put(t, "file/one/a.txt", "old")
	s.Vars = []string{
		"$TAG", info.ETag, "$TIME", info.ModTime.UTC().Format(http.TimeFormat),
		"$BEFORE", info.ModTime.Add(-time.Hour).UTC().Format(http.TimeFormat),
	}
	return s
}
