package caller

import (
	"errors"
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
		token   string
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
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			key, token, bearerOnly, err := credentials(headerOf(c.headers))
			if key != c.key || token != c.token || err != nil {
				t.Errorf("key %q, token %q, error %v, want %q and %q", key, token, err, c.key, c.token)
			}
			if want := !strings.Contains(strings.ToUpper(c.headers), "TOKEN"); bearerOnly != want {
				t.Errorf("bearer only: %t", bearerOnly)
			}
		})
	}
}

func headerOf(lines string) http.Header {
	header := http.Header{}
	for line := range strings.SplitSeq(lines, "|") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			header.Add(name, value)
		}
	}
	return header
}

// TestBadCredentials: the message names the mistake, as far as the caller's own headers show it.
func TestBadCredentials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		headers string
		want    error
	}{
		{"nothing", "", errNone},
		{"key alone", "Service-Api-Key: k", errNoToken},
		{"token alone", "Service-Access-Token: t", errNoKey},
		{"token alone, documented", "HTTP_SERVICE_ACCESS_TOKEN: t", errNoKey},
		{"empty", "Service-Api-Key: |Service-Access-Token: ", errNone},
		{"empty token", "Service-Api-Key: k|Service-Access-Token: ", errNoToken},
		{"empty key", "Service-Api-Key: |Service-Access-Token: t", errNoKey},
		{"empty bearer", "Authorization: Bearer ", errNone},
		{"bearer without a token", "Authorization: Bearer", errNone},
		{"basic alone", "Authorization: Basic eDp5", errNone},
		{"key twice", "Service-Api-Key: k|Service-Api-Key: k|Service-Access-Token: t", errTwice},
		{"documented key twice", "HTTP_SERVICE_API_KEY: k|HTTP_SERVICE_API_KEY: k|Service-Access-Token: t", errTwice},
		{"token twice", "Service-Api-Key: k|Service-Access-Token: t|Service-Access-Token: t", errTwice},
		{"authorization twice", "Authorization: Bearer t|Authorization: Bearer t", errTwice},
		{"authorization of two sorts", "Authorization: Basic eDp5|Authorization: Bearer t", errTwice},
		{"keys disagree", "HTTP_SERVICE_API_KEY: k|Service-Api-Key: l|Service-Access-Token: t", errTwice},
		{"tokens disagree", "HTTP_SERVICE_ACCESS_TOKEN: t|Service-Api-Key: k|Service-Access-Token: u", errTwice},
		{"bearer disagrees", "Authorization: Bearer u|Service-Api-Key: k|Service-Access-Token: t", errTwice},
		{"keys disagree beside bearer", "Authorization: Bearer t|HTTP_SERVICE_API_KEY: k|Service-Api-Key: l", errTwice},
		{"the other is empty", "HTTP_SERVICE_API_KEY: k|Service-Api-Key: |Service-Access-Token: t", errTwice},
		{"the one is empty", "HTTP_SERVICE_API_KEY: |Service-Api-Key: k|Service-Access-Token: t", errTwice},
		{"bearer without the key it came with", "Authorization: Bearer t|Service-Access-Token: t", errNoKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if key, token, _, err := credentials(headerOf(c.headers)); key+token != "" || !errors.Is(err, c.want) {
				t.Errorf("key %q, token %q, error %v, want %v", key, token, err, c.want)
			}
		})
	}
}
