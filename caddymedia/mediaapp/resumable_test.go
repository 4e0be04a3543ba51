package mediaapp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediaapp"
)

func TestResumable(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_STORAGE", "main")
	defaults := media.Resumable{Expires: 24 * time.Hour, MaxOpen: 100}
	for config, want := range map[string]media.Resumable{
		`null`:                          defaults,
		`{}`:                            defaults,
		`{"max_open": 0, "expires": 0}`: defaults,
		`{"off": true}`:                 {Off: true, Expires: 24 * time.Hour, MaxOpen: 100},
		`{"storage": "main"}`:           {Storage: "main", Expires: 24 * time.Hour, MaxOpen: 100},
		`{"storage": "{env.MEDIA_TEST_STORAGE}", "expires": "1m", "max_open": 3}`: {Storage: "main", Expires: time.Minute, MaxOpen: 3},
	} {
		t.Run(config, func(t *testing.T) {
			app := provisioned(t, `{`+storages("")+`, "resumable": `+config+`}`)
			if got := app.Service().ResumableOptions(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// TestResumableErrors: an error names the invalid option.
func TestResumableErrors(t *testing.T) { // not parallel: Caddy has globals
	for config, want := range map[string]string{
		`{"storage": "far"}`:                `resumable: storage: there is no storage "far"; there are main`,
		`{"off": true, "storage": "far"}`:   `resumable: storage: there is no storage "far"`,
		`{"storage": "{env.MEDIA_NOT_IT}"}`: "resumable: storage: ",
		`{"expires": -1}`:                   "resumable: expires is a duration above zero",
		`{"max_open": -1}`:                  "resumable: max_open is a number above zero",
		`{"max": 1}`:                        `unknown field "max"`,
		`"off"`:                             "resumable",
	} {
		t.Run(config, func(t *testing.T) { wantError(t, `{`+storages("")+`, "resumable": `+config+`}`, want) })
	}
}

// TestResumableOffCaddyfile: options beside "off" cannot be written.
func TestResumableOffCaddyfile(t *testing.T) {
	t.Parallel()
	block, omitted, err := mediaapp.Caddyfile([]byte(`{"resumable": {"off": true, "max_open": 5}}`))
	if err != nil || !strings.Contains(block, "\t\tresumable off\n") || len(omitted) != 1 || omitted[0] != "resumable/max_open" {
		t.Errorf("got:\n%s, omitted %q, error %v", block, omitted, err)
	}
}
