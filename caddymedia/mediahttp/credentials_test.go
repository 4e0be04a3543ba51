package mediahttp

import (
	"net/http"
	"strings"
	"testing"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		headers string // "name: value" by "|"
		key     string
		token   string // empty: refused
	}{
		{"documented", "HTTP_SERVICE_API_KEY: k|HTTP_SERVICE_ACCESS_TOKEN: t", "k", "t"},
		{"as PHP shows them", "Service-Api-Key: k|Service-Access-Token: t", "k", "t"},
		{"one of each", "HTTP_SERVICE_API_KEY: k|Service-Access-Token: t", "k", "t"},
		{"both, agreeing", "HTTP_SERVICE_API_KEY: k|Service-Api-Key: k|HTTP_SERVICE_ACCESS_TOKEN: t|Service-Access-Token: t", "k", "t"},
		{"in any case", "http_Service_api_KEY: k|service-ACCESS-token: t", "k", "t"},
		{"bearer alone", "Authorization: Bearer t", "", "t"},
		{"bearer in any case", "Authorization: bEARER t", "", "t"},
		{"bearer with more space", "Authorization: Bearer   t ", "", "t"},
		{"bearer and key", "Authorization: Bearer t|Service-Api-Key: k", "k", "t"},
		{"bearer and the same token", "Authorization: Bearer t|Service-Api-Key: k|Service-Access-Token: t", "k", "t"},
		{"a site's own basic_auth", "Authorization: Basic eDp5|Service-Api-Key: k|Service-Access-Token: t", "k", "t"},

		{"nothing", "", "", ""},
		{"key alone", "Service-Api-Key: k", "", ""},
		{"token alone", "Service-Access-Token: t", "", ""},
		{"token alone, documented", "HTTP_SERVICE_ACCESS_TOKEN: t", "", ""},
		{"empty", "Service-Api-Key: |Service-Access-Token: ", "", ""},
		{"empty token", "Service-Api-Key: k|Service-Access-Token: ", "", ""},
		{"empty key", "Service-Api-Key: |Service-Access-Token: t", "", ""},
		{"empty bearer", "Authorization: Bearer ", "", ""},
		{"bearer without a token", "Authorization: Bearer", "", ""},
		{"basic alone", "Authorization: Basic eDp5", "", ""},
		{"key twice", "Service-Api-Key: k|Service-Api-Key: k|Service-Access-Token: t", "", ""},
		{"documented key twice", "HTTP_SERVICE_API_KEY: k|HTTP_SERVICE_API_KEY: k|Service-Access-Token: t", "", ""},
		{"token twice", "Service-Api-Key: k|Service-Access-Token: t|Service-Access-Token: t", "", ""},
		{"authorization twice", "Authorization: Bearer t|Authorization: Bearer t", "", ""},
		{"authorization of two sorts", "Authorization: Basic eDp5|Authorization: Bearer t", "", ""},
		{"keys disagree", "HTTP_SERVICE_API_KEY: k|Service-Api-Key: l|Service-Access-Token: t", "", ""},
		{"tokens disagree", "HTTP_SERVICE_ACCESS_TOKEN: t|Service-Api-Key: k|Service-Access-Token: u", "", ""},
		{"bearer disagrees", "Authorization: Bearer u|Service-Api-Key: k|Service-Access-Token: t", "", ""},
		{"keys disagree beside bearer", "Authorization: Bearer t|HTTP_SERVICE_API_KEY: k|Service-Api-Key: l", "", ""},
		{"the other is empty", "HTTP_SERVICE_API_KEY: k|Service-Api-Key: |Service-Access-Token: t", "", ""},
		{"the one is empty", "HTTP_SERVICE_API_KEY: |Service-Api-Key: k|Service-Access-Token: t", "", ""},
		{"bearer without the key it came with", "Authorization: Bearer t|Service-Access-Token: t", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			for line := range strings.SplitSeq(c.headers, "|") {
				if name, value, ok := strings.Cut(line, ": "); ok {
					header.Add(name, value)
				}
			}
			key, token, err := credentials(header)
			if (err != nil) != (c.token == "") {
				t.Errorf("error %v", err)
			}
			if key != c.key || token != c.token {
				t.Errorf("key %q, token %q, want %q and %q", key, token, c.key, c.token)
			}
		})
	}
}
