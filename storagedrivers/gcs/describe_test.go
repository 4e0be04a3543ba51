package gcs

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// newModule returns a provisioned module with options in JSON.
var newModule = drivertest.NewModule[GCS]

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
