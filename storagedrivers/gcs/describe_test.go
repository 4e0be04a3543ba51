package gcs

import (
	"encoding/json"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// newModule returns a provisioned module with options in JSON.
func newModule(t *testing.T, options string) storagedrivers.Module {
	t.Helper()
	m := new(GCS)
	if err := json.Unmarshal([]byte(options), m); err != nil {
		t.Fatalf("%s: %v", options, err)
	}
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatalf("%s: %v", options, err)
	}
	return m
}

func TestDescription(t *testing.T) {
	t.Parallel()
	drivertest.Describe(t, drivertest.Description{
		New:         newModule,
		Options:     `{"bucket": "media"}`,
		Where:       "media",
		Missing:     `{"bucket": "nowhere", "endpoint": "` + inProcess(t).Endpoint + `"}`,
		Unreachable: `{"bucket": "media", "endpoint": "http://127.0.0.1:1"}`,
		Same: []string{
			`{"bucket": "media", "timeout": "5s", "prefix": "/"}`,
			`{"bucket": "media", "endpoint": "https://storage.europe-west3.rep.googleapis.com"}`,
		},
		Below: []string{`{"bucket": "media", "prefix": "below/it"}`},
		Apart: []string{
			`{"bucket": "other"}`,
			`{"bucket": "media", "endpoint": "http://127.0.0.1:4443"}`,
		},
	})
}
