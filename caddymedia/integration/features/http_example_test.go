package features_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestExampleIsTidy: Caddyfile.example adapts without a warning and is formatted by `caddy fmt`.
// Its log filter is the one tested for secrets.
func TestExampleIsTidy(t *testing.T) {
	example := site.ExampleCaddyfile(t)
	_, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(example), map[string]any{"filename": "Caddyfile.example"})
	if err != nil || len(warnings) != 0 {
		t.Errorf("adapting: %v, warnings %v", err, warnings)
	}
	if got := string(caddyfile.Format([]byte(example))); got != example {
		t.Errorf("caddy fmt makes of it:\n%s", got)
	}
	if !strings.Contains(strings.Join(strings.Fields(example), " "), strings.Join(strings.Fields(logFilter), " ")) {
		t.Errorf("its log filter is not:\n%s", logFilter)
	}
}

// TestExampleRuns runs Caddyfile.example, unchanged except for the port, and follows the first
// steps of a new user.
func TestExampleRuns(t *testing.T) {
	site.AwaitOneDay()
	s, output := site.RunExample(t, "off")
	r := s.Login(t, "try-out", "only for trying out")
	var answer struct {
		Success   bool   `json:"success"`
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"`
	}
	r.Decode(t, &answer)
	if !answer.Success {
		t.Fatalf("no token: %d %s", r.Status, r.Body)
	}
	if in := time.Until(time.Unix(answer.ExpiresAt, 0)); in < 23*time.Hour || in > 25*time.Hour {
		t.Errorf("the token expires in %v, want 24h", in)
	}
	header := site.Merged(site.AuthHeader("try-out", answer.Token), site.FormType)
	img := sample.JPEG(t, 30, 20)
	image := s.Do(t, http.MethodPost, "/api/upload/image", header, site.Form(site.File("Test Filename ěščř.JPG", img), site.Field("alias", "content"))).One(t)
	document := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("Manual.pdf", sample.PDF), site.Field("sub_folder", "manuals"))).One(t)
	folder := time.Now().Format("06-01/02")
	for got, want := range map[string]string{
		image.FullPath: s.URL + "/static/img/content/" + folder + "/test-filename-escr.jpg", document.FullPath: s.URL + "/static/file/content/manuals/manual.pdf",
		s.Fetch(t, image.FullPath).Body: img, s.Fetch(t, document.FullPath).Body: sample.PDF,
	} {
		if got != want {
			t.Errorf("got %.200q, want %.200q", got, want)
		}
	}
	if r := s.Get(t, "/"); r.Status != http.StatusNotFound || !strings.Contains(r.Body, site.TokenPath) {
		t.Errorf("elsewhere: %d %q", r.Status, r.Body)
	}
	s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("x.php", "x"))).Failures(t, http.StatusUnsupportedMediaType)
	log := output()
	if !strings.Contains(log, "http.log.access") || strings.Contains(log, answer.Token) {
		t.Errorf("the log lacks accesses, or has the token:\n%s", log)
	}
	for line := range strings.Lines(log) {
		if namesKey(line, "try-out") {
			t.Errorf("the key is logged: %s", line)
		}
	}
}
