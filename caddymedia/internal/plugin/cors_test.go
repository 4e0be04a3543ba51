package plugin_test

import "testing"

func TestCORS(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_ORIGIN", "https://www.example.com")
	for config, want := range map[string]string{
		`null`:                            "",
		`[]`:                              "",
		`["https://other.example"]`:       "",
		`["{env.MEDIA_TEST_ORIGIN}"]`:     "https://www.example.com",
		`["HTTPS://www.Example.com:443"]`: "https://www.example.com",
		`["*"]`:                           "*",
	} {
		t.Run(config, func(t *testing.T) {
			origins := provisioned(t, `{"cors": `+config+`}`).Service().Origins()
			if got := origins.Allow([]string{"https://www.example.com"}); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestCORSErrors: an error names the invalid origin.
func TestCORSErrors(t *testing.T) { // not parallel: Caddy has globals
	t.Setenv("MEDIA_TEST_ORIGIN", "https://www.example.com/")
	for config, want := range map[string]string{
		`["www.example.com"]`:              `cors: an origin is a scheme, a host and a port if it is not the default one`,
		`["{env.MEDIA_TEST_ORIGIN}"]`:      `not "https://www.example.com/"`,
		`["{env.MEDIA_NOT_IT}"]`:           "cors: ",
		`["https://www.example.com", "*"]`: "cors: * stands alone",
		`[""]`:                             `cors: an origin is`,
		`"*"`:                              "cors",
	} {
		t.Run(config, func(t *testing.T) { wantError(t, `{"cors": `+config+`}`, want) })
	}
}
