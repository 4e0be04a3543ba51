package features_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
)

// TestPanelCaddyfile: changes of the panel are in its Caddyfile, which has the configuration that
// runs if the variables have the values that the command prints.
func TestPanelCaddyfile(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.Put(t, http.StatusCreated, "image_aliases/photos", `{"value":{"max_size":1000001,"cache_control":"public, max-age=60","webp":{"effort":"small"}}}`)
	p.Put(t, http.StatusCreated, "accounts/new.site", `{"value":{"aliases":["photos"]},"new_password":true}`)
	p.Put(t, http.StatusCreated, "storages/bucket", map[string]any{
		"secrets": map[string]string{"driver.secret_access_key": firstSecret},
		"value": map[string]any{"driver": map[string]any{
			"name": "s3", "bucket": "b", "region": "r", "endpoint": "http://127.0.0.1:1", "access_key_id": "k",
		}},
	})
	var made struct {
		Text      string
		Command   string
		Variables []struct{ Name, Path string }
		Omitted   []string
	}
	p.As("viewer").Must(t, http.StatusOK, http.MethodGet, "config/caddyfile", nil).Decode(t, &made)
	if len(made.Variables) != 3 || len(made.Omitted) != 0 {
		t.Errorf("got %+v", made)
	}
	for _, secret := range []string{firstSecret, site.CheapHash, "$argon2id"} {
		if strings.Contains(made.Text, secret) {
			t.Errorf("%q is shown: %s", secret, made.Text)
		}
	}
	running := p.Running(t)
	values := map[string]string{}
	for _, v := range made.Variables {
		values["{env."+v.Name+"}"] = printed(t, made.Command+"/"+v.Path)
	}
	adapted := envName.ReplaceAllStringFunc(string(testcaddy.AdaptApp(t, "{\n"+made.Text+"}\n")), func(placeholder string) string {
		return values[placeholder]
	})
	var got, want any
	if err := json.Unmarshal([]byte(adapted), &got); err != nil {
		t.Fatalf("%v in %s", err, adapted)
	}
	if err := json.Unmarshal([]byte(running), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the Caddyfile has:\n%s\nrunning:\n%s", adapted, running)
	}
	p.Must(t, http.StatusMethodNotAllowed, http.MethodPut, "config/caddyfile", `{}`)
}

var envName = regexp.MustCompile(`\{env\.MEDIA_[A-Z0-9_]+\}`)

// printed returns the text that a command prints, which is curl with an address.
func printed(t *testing.T, command string) (text string) {
	t.Helper()
	address, ok := strings.CutPrefix(command, "curl -sS ")
	if !ok {
		t.Fatal(command)
	}
	resp, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&text); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", command, resp.Status, err)
	}
	return text
}
