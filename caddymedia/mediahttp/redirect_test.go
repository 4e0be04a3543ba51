package mediahttp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// unsigning is a driver whose credentials cannot sign addresses.
type unsigning struct{ *memory.Driver }

func (unsigning) Presign(context.Context, string, storagedrivers.PresignOptions) (string, error) {
	return "", errors.ErrUnsupported
}

// TestRedirectWarnings: the log warns once of each alias that cannot redirect, also if an alias of
// the other kind has its name.
func TestRedirectWarnings(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, unsigning{memory.New()}, media.Limits{}, func(c *media.Config) {
		signed := &media.Redirect{To: "presigned"}
		c.ImageAliases["elsewhere"].Redirect, c.FileAliases["elsewhere"].Redirect = signed, signed
	})
	for path, item := range map[string]part{imagePath: file("a.gif", gifPicture), filePath: file("a.txt", "text")} {
		c := httpCase{Target: path + "?alias=elsewhere", Header: bearer + multipart, Body: form(item), Status: 200}
		c.Check(t, s)
	}
	s.Log.Take()
	for range 2 {
		for _, path := range []string{"/static/img/elsewhere/a.gif", "/static/file/elsewhere/a.txt"} {
			httpCase{Target: path, Status: 200}.Check(t, s)
		}
	}
	const warning = "WARN serving an item instead of redirecting"
	if got := s.Log.Take(); !slices.Equal(got, []string{warning, warning}) {
		t.Errorf("logged %q", got)
	}
}

// TestRedirectOfActiveType: an item that was stored as HTML is served here, although its alias has
// another type for it by now: its storage would serve it as HTML. One that its alias makes HTML is too.
func TestRedirectOfActiveType(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.FileAliases["elsewhere"].Redirect = &media.Redirect{To: "public", Base: "https://bucket.example.com"}
		c.FileAliases["elsewhere"].Types = []string{"html=text/plain", "txt=text/plain", "page=text/html"}
	})
	for name, status := range map[string]int{"a.html": 200, "a.page": 200, "a.txt": 302} {
		opts := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
		if _, err := s.Backend.Put(t.Context(), "file/elsewhere/"+name, strings.NewReader("<b>text</b>"), opts); err != nil {
			t.Fatal(err)
		}
		httpCase{Target: "/static/file/elsewhere/" + name, Status: status}.Check(t, s)
	}
}
