package ftp

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	const login = `"user": "media", "password": "a"`
	f := (&fake{}).start(t)
	f.refuse(func(command, _ string) bool { return command == "MKD" }, "550 /root: Not a directory")
	failing := func(address, password string) string {
		return `{"address": "` + address + `", "user": "u", "password": "` + password + `", "tls": "none", "root": "root"}`
	}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"address": "files.example.com", ` + login + `}`,
		Where:       "media@files.example.com",
		Refused:     failing(f.address, "wrong"),
		Missing:     failing(f.address, "secret"),
		Unreachable: failing("127.0.0.1:1", "secret"),
		Same: []string{
			`{"address": "files.example.com:21", "user": "media", "password": "b", "tls": "explicit", "timeout": "5s"}`,
			`{"address": "Files.example.com", ` + login + `, "tls": "implicit", "connections": 2, "lock": false, "root": "."}`,
		},
		Below: []string{`{"address": "files.example.com", ` + login + `, "root": "below/it/"}`},
		Apart: []string{
			`{"address": "files.example.com", "user": "other", "password": "a"}`,
			`{"address": "files.example.com", ` + login + `, "root": "/srv"}`,
			`{"address": "files.example.com:2121", ` + login + `}`,
		},
	})
	drivertest.Describe(t, drivertest.Description{
		New:     newConfig,
		Options: `{"address": "files.example.com", ` + login + `, "root": "/srv"}`,
		Where:   "media@files.example.com /srv",
		Same:    []string{`{"address": "files.example.com", "user": "other", "root": "/srv/"}`},
		Below:   []string{`{"address": "files.example.com", "user": "other", "root": "/srv/below/it"}`},
		Apart:   []string{`{"address": "files.example.com", ` + login + `, "root": "/media"}`},
	})
}

// TestParallel: storing an object may need two connections.
func TestParallel(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]int{
		`{"address": "a", "user": "u"}`:                   4,
		`{"address": "a", "user": "u", "connections": 5}`: 2,
		`{"address": "a", "user": "u", "connections": 1}`: 1,
	} {
		if got := newConfig(t, options).(storagedrivers.Limited).Limits().Parallel; got != want {
			t.Errorf("%s: %d, want %d", options, got, want)
		}
	}
}
