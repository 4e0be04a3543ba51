package gcs

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
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
