package caller

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
)

// TestGateWritesNoError: an error of an endpoint is left to the server to write, over each version
// of HTTP.
func TestGateWritesNoError(t *testing.T) {
	t.Parallel()
	g := &Gate{Options: Options{}.withDefaults(), Acquire: func() (*service.Service, func(), error) { return nil, func() {}, nil }}
	for version := 1; version <= 3; version++ {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
		r.ProtoMajor = version
		w := httptest.NewRecorder()
		err := g.Answer(w, r, func(_ *service.Service, w http.ResponseWriter, r *http.Request) error {
			return httpx.AnswerUnread(w, r, http.StatusOK, func() {}) // JSON has no functions
		})
		if err == nil || w.Flushed {
			t.Errorf("HTTP/%d: %v, flushed %t", version, err, w.Flushed)
		}
	}
}
