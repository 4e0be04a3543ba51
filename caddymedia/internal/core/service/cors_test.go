package service

import (
	"strings"
	"testing"
)

// TestParseOrigins: an origin is compared with those of browsers, which write it in one form.
func TestParseOrigins(t *testing.T) {
	t.Parallel()
	for given, sent := range map[string]string{
		"https://www.example.com":      "https://www.example.com",
		"http://localhost":             "http://localhost",
		"http://localhost:8080":        "http://localhost:8080",
		"HTTPS://WWW.Example.com":      "https://www.example.com",
		"https://example.com:443":      "https://example.com",
		"http://example.com:80":        "http://example.com",
		"https://example.com:80":       "https://example.com:80",
		"http://example.com:443":       "http://example.com:443",
		"https://example.com:08443":    "https://example.com:8443",
		"https://127.0.0.1:3000":       "https://127.0.0.1:3000",
		"http://[::1]:3000":            "http://[::1]:3000",
		"http://[2001:DB8:0:0::1]":     "http://[2001:db8::1]",
		"https://příklad.example":      "https://xn--pklad-zsa96e.example",
		"https://xn--pklad-zsa96e.com": "https://xn--pklad-zsa96e.com",
		"https://my_host.example":      "https://my_host.example",
		"https://example.com.":         "https://example.com.",
	} {
		origins, err := ParseOrigins([]string{"https://other.example", given})
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if got := origins.Allow([]string{sent}); got != sent {
			t.Errorf("%s: %q for %s", given, got, sent)
		}
	}
}

func TestParseOriginsErrors(t *testing.T) {
	t.Parallel()
	for _, given := range []string{
		"", " ", "null", "example.com", "//example.com", "https://", "https:///", "https://example.com/", "https://example.com/a",
		"https://example.com?", "https://example.com?a=b", "https://example.com#", "https://example.com#a", "ftp://example.com",
		"https:example.com", "https://*.example.com", "https://*", "*.example.com", "https://example.com:", "https://example.com:0",
		"https://example.com:65536", "https://example.com:x", "https://exa mple.com", "https://exa%6Dple.com", "https://a..b",
		"https://a,https://b", "http://[::1", "http://[fe80::1%25eth0]", "http://[::ffff:127.0.0.1]", "http://[]", "file://", " https://a", "https://a ",
	} {
		if _, err := ParseOrigins([]string{given}); err == nil || !strings.Contains(err.Error(), "an origin is") {
			t.Errorf("%q: error %v", given, err)
		}
	}
	if _, err := ParseOrigins([]string{"https://me:hidden@example.com"}); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("error %v", err)
	}
	if _, err := ParseOrigins([]string{"*", "https://a"}); err == nil || !strings.Contains(err.Error(), "* stands alone") {
		t.Errorf("error %v", err)
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	listed, all := mustParse(t, "https://a", "https://b"), mustParse(t, "*")
	for _, c := range []struct {
		sent   []string
		listed string
	}{
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"https://a"}, "https://a"},
		{[]string{"https://a", "https://b"}, ""},
		{[]string{"https://a https://b"}, ""},
		{[]string{"HTTPS://A"}, ""},
		{[]string{"null"}, ""},
		{[]string{"*"}, ""},
	} {
		if got := listed.Allow(c.sent); got != c.listed {
			t.Errorf("%q: %q, want %q", c.sent, got, c.listed)
		}
		if got := all.Allow(c.sent); got != "*" {
			t.Errorf("%q of all: %q", c.sent, got)
		}
		if got := (*Origins)(nil).Allow(c.sent); got != "" {
			t.Errorf("%q of none: %q", c.sent, got)
		}
	}
}

func mustParse(t *testing.T, list ...string) *Origins {
	t.Helper()
	o, err := ParseOrigins(list)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
