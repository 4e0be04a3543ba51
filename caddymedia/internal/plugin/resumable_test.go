package plugin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/plugin"
	"github.com/caddymedia/media/caddymedia/internal/service"
)

func TestResumable(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_STORAGE", "main")
	const maxBytes = 64 << 30
	defaults := service.Resumable{Expires: 24 * time.Hour, MaxOpen: 100, MaxBytes: maxBytes}
	for config, want := range map[string]service.Resumable{
		`null`:                          defaults,
		`{}`:                            defaults,
		`{"max_open": 0, "expires": 0}`: defaults,
		`{"off": true}`:                 {Off: true, Expires: 24 * time.Hour, MaxOpen: 100, MaxBytes: maxBytes},
		`{"storage": "main"}`:           {Storage: "main", Expires: 24 * time.Hour, MaxOpen: 100, MaxBytes: maxBytes},
		`{"storage": "{env.MEDIA_TEST_STORAGE}", "expires": "1m", "max_open": 3}`: {Storage: "main", Expires: time.Minute, MaxOpen: 3, MaxBytes: maxBytes},
		`{"max_bytes": 4294967296}`: {Expires: 24 * time.Hour, MaxOpen: 100, MaxBytes: 4 << 30},
	} {
		t.Run(config, func(t *testing.T) {
			app := provisioned(t, `{`+storages("")+`, "resumable": `+config+`}`)
			if got := app.Service().Resumable(); got != want {
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
		`{"max_bytes": -1}`:                 "resumable: max_bytes is a size above zero",
		`{"max_bytes": 4294967295}`:         "resumable: max_bytes is less than twice the largest max_size of an alias, 2 GiB",
		`{"max": 1}`:                        `unknown field "max"`,
		`"off"`:                             "resumable",
	} {
		t.Run(config, func(t *testing.T) { wantError(t, `{`+storages("")+`, "resumable": `+config+`}`, want) })
	}
}

// TestResumableOffCaddyfile: options beside "off" cannot be written.
func TestResumableOffCaddyfile(t *testing.T) {
	t.Parallel()
	block, omitted, err := plugin.Caddyfile([]byte(`{"resumable": {"off": true, "max_open": 5}}`))
	if err != nil || !strings.Contains(block, "\t\tresumable off\n") || len(omitted) != 1 || omitted[0] != "resumable/max_open" {
		t.Errorf("got:\n%s, omitted %q, error %v", block, omitted, err)
	}
}
