package sftp

import (
	"os"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	const host = `"insecure_skip_host_key": true, "address": "files.example.com"`
	folder := t.TempDir()
	if err := os.WriteFile(folder+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	failing := func(address, password string) string {
		return `{"insecure_skip_host_key": true, "address": "` + address + `", "user": "` + testUser + `", "password": "` + password + `", "root": "file"}`
	}
	s := startServer(t, folder)
	notSecret := []string{"host_key", "insecure_skip_host_key"}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{` + host + `, "user": "media", "password": "a"}`,
		Where:       "media@files.example.com",
		Refused:     failing(s.address, "wrong"),
		Missing:     failing(s.address, testPassword),
		Unreachable: failing("127.0.0.1:1", testPassword),
		NotSecret:   notSecret,
		Same: []string{
			`{` + host + `, "user": "media", "password": "b", "root": "./x/..", "timeout": "5s", "connections": 5}`,
			`{"address": "Files.example.com:22", "host_key": ["SHA256:abc"], "user": "media", "password": "a"}`,
		},
		Below: []string{`{` + host + `, "user": "media", "password": "a", "root": "below/it/"}`},
		Apart: []string{
			`{` + host + `, "user": "other", "password": "a"}`,
			`{` + host + `, "user": "media", "password": "a", "root": "/srv"}`,
			`{"address": "files.example.com:2222", "insecure_skip_host_key": true, "user": "media", "password": "a"}`,
			`{"address": "files.example.org", "insecure_skip_host_key": true, "user": "media", "password": "a"}`,
		},
	})
	drivertest.Describe(t, drivertest.Description{
		New:       newConfig,
		Options:   `{` + host + `, "user": "media", "password": "a", "root": "/srv/media"}`,
		Where:     "media@files.example.com /srv/media",
		NotSecret: notSecret,
		Same:      []string{`{` + host + `, "user": "other", "password": "a", "root": "/srv//media/"}`},
		Below:     []string{`{` + host + `, "user": "other", "password": "a", "root": "/srv/media/below/it"}`},
		Apart:     []string{`{` + host + `, "user": "media", "password": "a", "root": "/srv/media2"}`},
	})
}
