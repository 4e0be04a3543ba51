package docs_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// TestPanelOpenAPI: only logged-in users get the OpenAPI document.
func TestPanelOpenAPI(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	var document, want map[string]any
	if err := json.Unmarshal(mediahttp.OpenAPI, &want); err != nil {
		t.Fatal(err)
	}
	p.As("viewer").Call(t, http.MethodGet, "openapi.json", nil).Decode(t, &document)
	if document["openapi"] != "3.1.0" || len(document) != len(want) {
		t.Errorf("the document is %v", document)
	}
	for _, tt := range []struct {
		user, method, route string
		status              int
	}{
		{"viewer", http.MethodHead, "openapi.json", http.StatusOK},
		{"admin", http.MethodDelete, "openapi.json", http.StatusMethodNotAllowed},
		{"admin", http.MethodGet, "openapi.json/more", http.StatusNotFound},
		{"", http.MethodGet, "openapi.json", http.StatusUnauthorized},
	} {
		if r := p.As(tt.user).Call(t, tt.method, tt.route, nil); r.Status != tt.status {
			t.Errorf("%s %s of %q: %d %.300s, want %d", tt.method, tt.route, tt.user, r.Status, r.Body, tt.status)
		}
	}
}
