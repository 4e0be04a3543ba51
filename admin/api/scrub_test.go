package api

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	const (
		odd = "p\"a s/s\\<&>"
		key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nBG5vbmUAAAAEbm9uZQAAAAAAAAAB\n-----END OPENSSH PRIVATE KEY-----\n"
		sas = "BlobEndpoint=https://example.com/;SharedAccessSignature=sv=2024-01-01&sig=c2lnbmF0dXJlLW9mLWEtc2Fz%3D"
		con = "AccountName=media;AccountKey=QWNjb3VudEtleUZvclRlc3RzT25seQ==;EndpointSuffix=core.windows.net"
	)
	for _, c := range []struct {
		name, text string
		secrets    []string
		want       string
	}{
		{"nothing secret", "all is well", nil, "all is well"},
		{"another secret", "all is well", []string{"secret"}, "all is well"},
		{"empty ones", "all is well", []string{"", " ", "\n"}, "all is well"},
		{"plain", "login with hunter22 failed: hunter22", []string{"hunter22"}, "login with *** failed: ***"},
		{"quoted", fmt.Sprintf("login with %q", odd), []string{odd}, `login with "***"`},
		{"in a query", "https://x/?p=" + url.QueryEscape(odd), []string{odd}, "https://x/?p=***"},
		{"in a path", "https://x/" + url.PathEscape(odd), []string{odd}, "https://x/***"},
		{"in JSON", `{"p":"p\"a s/s\\\u003c\u0026\u003e"}`, []string{odd}, `{"p":"***"}`},
		{"one in another", "secret and secret-two", []string{"secret", "secret-two"}, "*** and ***"},
		{"the longer one first", "abcdef", []string{"bcde", "abcdef"}, "***"},
		{"with a line break behind", "is hunter22.", []string{"hunter22\n"}, "is ***."},
		{"line of a key", "bad base64: b3BlbnNzaC1rZXktdjEAAAAA", []string{key}, "bad base64: ***"},
		{"frame of a key", "no -----END OPENSSH PRIVATE KEY-----", []string{key}, "no -----END OPENSSH PRIVATE KEY-----"},
		{"key of a connection string", "bad key QWNjb3VudEtleUZvclRlc3RzT25seQ==", []string{con}, "bad key ***"},
		{"host of a connection string", "no host core.windows.net", []string{con}, "no host core.windows.net"},
		{"signature", "GET https://example.com/c?sig=c2lnbmF0dXJlLW9mLWEtc2Fz%3D", []string{sas}, "GET https://example.com/c?sig=***"},
		{"short one", "a cat", []string{"cat"}, hiddenText},
		{"short one that is not there", "a dog", []string{"cat"}, "a dog"},
		{"short one beside a long one", "hunter22 has a cat", []string{"cat", "hunter22"}, hiddenText},
	} {
		if got := Scrub(c.text, c.secrets); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestOptionError: what is left of Caddy's errors names the option.
func TestOptionError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"module name 'sftp': provision media.storages.sftp: sftp storage: address is missing":     "sftp storage: address is missing",
		"module name 's3': media.storages.s3: invalid configuration: s3 storage without a bucket": "s3 storage without a bucket",
		`module name 's3': decoding module config: media.storages.s3: json: unknown field "x"`:    `json: unknown field "x"`,
		"module name 'x': unknown module: media.storages.x":                                       "unknown module: media.storages.x",
		"something else": "something else",
	} {
		if got := optionError(fmt.Errorf("%s", text)); !strings.HasSuffix(got, want) || len(got) > len(want)+len("module name 'x': ") {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
