package serve

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

// TestNegotiationFails: an image whose header cannot be read is closed, so that its storage can be.
func TestNegotiationFails(t *testing.T) {
	t.Parallel()
	alias, d, _ := memoryAlias(t)
	closed := false
	alias.Storage = storagedrivers.New("closed", d, storagedrivers.Options{Close: func() error { closed = true; return nil }})
	alias.Negotiate = true
	store(t, alias, "a.jpg", "image")
	d.Fail = func(op, _ string) error {
		if op == "open" {
			return fs.ErrPermission
		}
		return nil
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept", webpType)
	if _, err := (target{alias: alias, maker: derivedtest.NewMaker(nil, render.Limits{}), filename: "a.jpg"}).open(http.Header{}, r); err == nil {
		t.Error("opened")
	}
	if err := alias.Storage.Close(); err != nil || !closed {
		t.Errorf("the storage is in use: closed %t, error %v", closed, err)
	}
}
