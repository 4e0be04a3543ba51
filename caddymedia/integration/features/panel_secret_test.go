package features_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// The secrets of the storage that TestPanelSecrets edits. They must not appear in any output.
const (
	firstSecret  = "the-first-s3cret-of-a-bucket"
	secondSecret = "the-second-s3cret-of-a-bucket"
	envSecret    = "the-s3cret-of-the-environment"
)

// TestPanelSecrets: an omitted secret is kept, an empty one is removed, and none is in an answer or
// in the log.
func TestPanelSecrets(t *testing.T) {
	t.Setenv("MEDIA_TEST_SECRET", envSecret)
	p := site.StartPanel(t, site.Basic)
	const route = "storages/bucket"
	body := func(region string, secrets map[string]string) map[string]any {
		return map[string]any{"secrets": secrets, "value": map[string]any{"driver": map[string]any{
			"name": "s3", "bucket": "b", "region": region, "endpoint": "http://127.0.0.1:1", "access_key_id": "the-id",
		}}}
	}
	has := func(want string) {
		t.Helper()
		var running struct {
			Storages map[string]struct{ Driver map[string]any }
		}
		if err := json.Unmarshal([]byte(p.Running(t)), &running); err != nil {
			t.Fatal(err)
		}
		if got, _ := running.Storages["bucket"].Driver["secret_access_key"].(string); got != want {
			t.Errorf("the secret is %q, want %q", got, want)
		}
		isSet := slices.Contains(p.Entry(t, route).Secrets, "driver.secret_access_key")
		if isSet != (want != "") {
			t.Errorf("shown as set: %t", isSet)
		}
	}
	named := func(secret string) map[string]string {
		return map[string]string{"driver.secret_access_key": secret}
	}
	p.Put(t, http.StatusCreated, route, body("one", named(firstSecret)))
	has(firstSecret)
	tag := p.Entry(t, route).Tag
	p.Put(t, http.StatusOK, route, body("two", nil))
	has(firstSecret)
	p.Put(t, http.StatusOK, route, body("one", named(secondSecret)))
	has(secondSecret)
	if p.Entry(t, route).Tag == tag {
		t.Error("another secret has the same tag")
	}

	// A refused edit does not reveal a secret in it.
	for _, secret := range []string{"{env.MEDIA_TEST_NOT_SET_" + firstSecret + "}", firstSecret} {
		broken := body("one", named(secret))
		broken["value"].(map[string]any)["driver"].(map[string]any)["endpoint"] = "ftp://" + firstSecret + "@x"
		p.Put(t, http.StatusBadRequest, route, broken)
	}
	p.Put(t, http.StatusBadRequest, route, map[string]any{"value": map[string]any{"driver": map[string]any{
		"name": "s3", "bucket": "b", "secret_access_key": firstSecret,
	}}})
	has(secondSecret)

	// Probe without saving, with the saved secret and with a new one.
	for _, secrets := range []map[string]string{nil, named(firstSecret)} {
		trial := map[string]any{"driver": body("one", nil)["value"].(map[string]any)["driver"], "secrets": secrets, "keep": "bucket"}
		if r := p.Must(t, http.StatusOK, http.MethodPost, "probe", trial); !strings.Contains(r.Body, `"ok":false`) {
			t.Errorf("a probe of nothing: %s", r.Body)
		}
	}
	p.Must(t, http.StatusNotFound, http.MethodPost, "probe", map[string]any{"driver": map[string]any{"name": "s3"}, "keep": "none"})

	// A change to another driver removes the secrets.
	p.Put(t, http.StatusOK, route, site.LocalStorage(p.Root+"/x"))
	has("")
	p.Put(t, http.StatusOK, route, body("one", named("{env.MEDIA_TEST_SECRET}")))
	has("{env.MEDIA_TEST_SECRET}")
	if r := p.Must(t, http.StatusOK, http.MethodGet, "config", nil); !strings.Contains(r.Body, "{env.MEDIA_TEST_SECRET}") ||
		!strings.Contains(r.Body, "{env.MEDIA_ACCOUNTS_SITE_ONE_PASSWORD_HASH}") ||
		!strings.Contains(r.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("the download: %v %s", r.Header, r.Body)
	}
	p.Put(t, http.StatusOK, route, body("one", named(secondSecret)))
	for _, route := range []string{"kinds", "storages", "storages/bucket", "aliases", "accounts", "health", "config", "session", "config/" + route, "config/accounts/" + site.APIKey} {
		p.Must(t, http.StatusOK, http.MethodGet, route, nil)
	}
	withoutKeys := body("one", named(""))
	delete(withoutKeys["value"].(map[string]any)["driver"].(map[string]any), "access_key_id")
	p.Put(t, http.StatusOK, route, withoutKeys)
	has("")

	p.WaitForLog(t, "change in the panel")
	log := p.Logged(t)
	for _, secret := range []string{firstSecret, secondSecret, envSecret, site.CheapHash} {
		for _, answer := range *p.Seen {
			if strings.Contains(answer.Body, secret) {
				t.Errorf("%q is shown: %s", secret, answer.Body)
			}
		}
		if secret == site.CheapHash {
			continue
		}
		for line := range strings.Lines(log) {
			// Caddy itself logs why it refuses a configuration. A secret written into another
			// option is not protected there.
			if strings.Contains(line, secret) && !strings.Contains(line, `"logger":"admin.api"`) {
				t.Errorf("%q is logged: %s", secret, line)
			}
		}
	}
}
