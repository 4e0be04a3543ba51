package network_test

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"Files.Example.COM":      "files.example.com",
		"files.example.com.":     "files.example.com",
		"files.example.com:22":   "files.example.com",
		"files.example.com:2222": "files.example.com:2222",
		"192.0.2.1:22":           "192.0.2.1",
		"::1":                    "::1",
		"[0:0::1]:22":            "::1",
		"[::1]:2222":             "[::1]:2222",
		"[::ffff:192.0.2.1]":     "192.0.2.1",
	} {
		if got := network.Host(address, "22"); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestServiceHost(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://S3.Example.com":                  "s3.example.com",
		"https://s3.example.com:443/":             "s3.example.com",
		"http://s3.example.com:80":                "s3.example.com",
		"http://s3.example.com:9000":              "s3.example.com:9000",
		"http://127.0.0.1:10000/devstoreaccount1": "127.0.0.1:10000/devstoreaccount1",
		"https://s3.example.com/Some/Path/":       "s3.example.com/Some/Path",
	} {
		if got := network.ServiceHost(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}
