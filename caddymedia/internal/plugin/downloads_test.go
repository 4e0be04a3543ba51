package plugin_test

import "testing"

// TestDownloadsErrors: an error names the invalid option.
func TestDownloadsErrors(t *testing.T) { // not parallel: Caddy has globals
	for config, want := range map[string]string{
		`{"allow": ["example.com"]}`:         `downloads: allow: "example.com" is neither`,
		`{"allow": ["10.0.0.0/33"]}`:         `downloads: allow: "10.0.0.0/33" is neither`,
		`{"allow": [""]}`:                    `downloads: allow: "" is neither`,
		`{"allow": ["::ffff:10.0.0.1"]}`:     `downloads: allow: "::ffff:10.0.0.1" is neither`,
		`{"allow": ["::ffff:10.0.0.0/104"]}`: `downloads: allow: "::ffff:10.0.0.0/104" is neither`,
		`{"allow": ["fe80::1%eth0"]}`:        `downloads: allow: "fe80::1%eth0" is neither`,
		`{"allow": ["{env.MEDIA_NOT_IT}"]}`:  "downloads: allow: ",
		`{"ports": ["http"]}`:                `downloads: ports: "http" is no port`,
		`{"ports": ["0"]}`:                   `downloads: ports: "0" is no port`,
		`{"ports": ["65536"]}`:               `downloads: ports: "65536" is no port`,
		`{"max_redirects": -1}`:              "downloads: max_redirects is a number above zero",
		`{"timeout": -1}`:                    "downloads: timeout is a duration above zero",
		`{"deny": []}`:                       `unknown field "deny"`,
	} {
		t.Run(config, func(t *testing.T) { wantError(t, `{"downloads": `+config+`}`, want) })
	}
	t.Setenv("MEDIA_TEST_NETWORK", "fd00::/8")
	provisioned(t, `{"downloads": {"allow": ["{env.MEDIA_TEST_NETWORK}", "192.168.1.7", "::1"], "ports": ["80"], "max_redirects": 1, "timeout": "5m"}}`)
	provisioned(t, `{"downloads": null}`)
}
