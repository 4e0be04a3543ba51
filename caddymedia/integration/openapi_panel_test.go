package integration

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/mediahttp"
)

// TestPanelOpenAPI: only logged-in users get the OpenAPI document.
func TestPanelOpenAPI(t *testing.T) {
	p := startPanel(t, basic)
	var document, want map[string]any
	if err := json.Unmarshal(mediahttp.OpenAPI, &want); err != nil {
		t.Fatal(err)
	}
	p.as("viewer").call(t, http.MethodGet, "openapi.json", nil).decode(t, &document)
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
		if r := p.as(tt.user).call(t, tt.method, tt.route, nil); r.status != tt.status {
			t.Errorf("%s %s of %q: %d %.300s, want %d", tt.method, tt.route, tt.user, r.status, r.body, tt.status)
		}
	}
}
