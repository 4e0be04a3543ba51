package tus_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestChecks: while a check does not answer, a complete upload waits, and it is stored when
// somebody asks for it later. One that the check refuses is gone.
func TestChecks(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	s := newSiteOn(t, memory.New(), media.Limits{}, func(c *media.Config) {
		for _, alias := range c.FileAliases {
			alias.Checks = map[string]*media.Check{"judge": {HTTP: server.URL}}
		}
	})
	for stored, method := range []string{http.MethodGet, http.MethodPatch} {
		status.Store(http.StatusInternalServerError)
		address := s.create(t, len(digits), aText)
		s.patch(t, address, 0, digits, "").Want(t, 503, "Retry-After: 5")
		if keys := s.StoredAs(t, "file/content/"); len(keys) != stored {
			t.Errorf("stored are %q", keys)
		}
		status.Store(http.StatusNoContent)
		got := s.send(t, method, address, fmt.Sprintf("%sUpload-Offset: %d\n", tusBody, len(digits)), "")
		if keys := s.StoredAs(t, "file/content/"); len(keys) != stored+1 || got.Status/100 != 2 {
			t.Errorf("%s: %+v, stored are %q", method, got, keys)
		}
	}
	status.Store(http.StatusForbidden)
	address := s.create(t, len(digits), aText)
	s.patch(t, address, 0, digits, "").Want(t, 415, "")
	s.send(t, http.MethodHead, address, "", "").Want(t, 410, "")
	s.nothingOpen(t)
}
