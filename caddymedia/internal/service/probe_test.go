package service

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// presigning is a driver whose backend has an address.
type presigning struct {
	*memory.Driver
	base string
}

func (d presigning) Presign(_ context.Context, key string, _ storagedrivers.PresignOptions) (string, error) {
	return d.base + "/" + key + "?signature=x", nil
}

// TestProbePrivate: the probe of a storage with private items warns if its objects can be read
// without a signature, and leaves nothing behind.
func TestProbePrivate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		below   string // the prefix that it is for; others get 403
		private *item.Private
		steps   int // further ones
		note    string
	}{
		"public bucket":         {http.StatusOK, "", &item.Private{}, 1, noteUnsigned},
		"public prefix":         {http.StatusOK, "file/a/", &item.Private{}, 1, noteUnsigned},
		"last public prefix":    {http.StatusOK, "file/b/", &item.Private{}, 1, noteUnsigned},
		"other public prefix":   {http.StatusOK, "file/open/", &item.Private{}, 1, ""},
		"private bucket":        {http.StatusForbidden, "", &item.Private{}, 1, ""},
		"redirect":              {http.StatusFound, "", &item.Private{}, 1, ""},
		"without private items": {http.StatusOK, "", nil, 0, ""},
		"unreachable":           {0, "", &item.Private{}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver := memory.New()
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := driver.Stat(r.Context(), r.URL.Path[1:]); err != nil || r.URL.RawQuery != "" {
					t.Errorf("requested %s: %v", r.URL, err)
				}
				if !strings.HasPrefix(r.URL.Path[1:], c.below) {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				w.WriteHeader(c.status)
			}))
			defer backend.Close()
			if c.status == 0 {
				backend.Close()
			}
			a, b := newAlias(t, item.File, "a"), newAlias(t, item.File, "b")
			a.Private, b.Private = c.private, c.private
			parts := partsOf(t)
			parts.Storages[0].Driver = presigning{driver, backend.URL}
			parts.Aliases = aliasesOf(a, b, newAlias(t, item.File, "open"))
			s := start(t, parts)
			storage, _ := s.Storage("default")
			plain, report := storage.Probe(t.Context()), s.Probe(t.Context(), storage)
			last := report.Steps[len(report.Steps)-1]
			if !report.OK() || len(report.Steps) != len(plain.Steps)+c.steps || last.Note != c.note {
				t.Errorf("%d steps, want %d more than %d; the last is %+v", len(report.Steps), c.steps, len(plain.Steps), last)
			}
			for info, err := range storage.All(t.Context(), "") {
				t.Errorf("left behind: %s (%v)", info.Key, err)
			}
		})
	}
}
