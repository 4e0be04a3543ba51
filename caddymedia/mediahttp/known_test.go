package mediahttp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	_ "github.com/caddymedia/media/caddymedia/tokens/memory"
	_ "github.com/caddymedia/media/storagedrivers/local"
)

const multipartType = "multipart/form-data; boundary=x"

// known is a server that takes every caller for one account, and nobody's token.
type known struct {
	*httptest.Server
	root    string // of the storage
	logs    *observer.ObservedLogs
	uploads *mediahttp.Uploads
}

// serveKnown runs an app with the file aliases "one", "two" and "broken", whose storage
// cannot be used.
func serveKnown(t *testing.T, account tokens.Account) *known {
	t.Helper()
	root := t.TempDir()
	plain := filepath.Join(root, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	app := mustJSON(t, map[string]any{
		"tokens": map[string]any{"store": "memory"},
		"limits": map[string]any{"max_body": 2048},
		"storages": map[string]any{
			"main":   map[string]any{"driver": map[string]any{"name": "local", "root": filepath.Join(root, "items")}, "sub_folder_format": "/"},
			"broken": map[string]any{"driver": map[string]any{"name": "local", "root": plain}},
		},
		"file_aliases": map[string]any{
			"one": map[string]any{"storage": "main"}, "two": map[string]any{"storage": "main"},
			"broken": map[string]any{"storage": "broken"},
		},
	})
	err := caddy.Run(&caddy.Config{
		Admin: &caddy.AdminConfig{Disabled: true, Config: &caddy.ConfigSettings{Persist: new(bool)}},
		Logging: &caddy.Logging{Logs: map[string]*caddy.CustomLog{
			"default": {BaseLog: caddy.BaseLog{WriterRaw: json.RawMessage(`{"output":"discard"}`)}},
		}},
		AppsRaw: caddy.ModuleMap{"media": app},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	core, logs := observer.New(zap.DebugLevel)
	uploads := &mediahttp.Uploads{Origin: ingest.OriginPanel, Log: zap.New(core)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		active, err := mediaapp.Active()
		if err == nil {
			err = uploads.Serve(active, w, r, ingest.File, account)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &known{server, filepath.Join(root, "items"), logs, uploads}
}

func mustJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// formOf is a form with a file, after the fields.
func formOf(t *testing.T, filename string, fields ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	err := w.SetBoundary("x")
	for i := 0; i+1 < len(fields); i += 2 {
		err = errors.Join(err, w.WriteField(fields[i], fields[i+1]))
	}
	part, partErr := w.CreateFormFile("files[]", filename)
	if err := errors.Join(err, partErr); err != nil {
		t.Fatal(err)
	}
	_, err = part.Write([]byte("text"))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// answered is an answer to an upload of either sort.
type answered struct {
	status int
	header http.Header

	Success bool `json:"success"`
	Result  []struct {
		FullPath string `json:"full_path"`
		Filename string `json:"filename"`
	} `json:"result"`
	Errors []struct {
		Message  string `json:"message"`
		Filename string `json:"filename"`
	} `json:"errors"`
}

// send gives the answer to a request, which must be what every answer is.
func (k *known) send(t *testing.T, method, query, contentType, body string) answered {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, k.URL+"/anywhere"+query, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	response, err := k.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answered{status: response.StatusCode, header: response.Header}
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("%d %q: %v", response.StatusCode, b, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Www-Authenticate": "",
	} {
		if got := response.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if ok := response.StatusCode == http.StatusOK; ok != a.Success || ok == response.Close {
		t.Errorf("%d: success %t, connection closed %t", response.StatusCode, a.Success, response.Close)
	}
	return a
}

// TestServeOfKnownAccount: a token is not asked for, and what the account may not use is
// refused, however it is named.
func TestServeOfKnownAccount(t *testing.T) { // not parallel: Caddy has globals
	for _, account := range []tokens.Account{{APIKey: "few", Aliases: []string{"one"}}, {APIKey: "all"}} {
		k := serveKnown(t, account)
		for _, alias := range []string{"one", "two"} {
			for how, c := range map[string]struct{ query, body string }{
				"query": {"?alias=" + alias, formOf(t, "query.txt")},
				"form":  {"", formOf(t, "form.txt", "alias", alias)},
			} {
				t.Run(account.APIKey+" "+alias+" by "+how, func(t *testing.T) {
					a := k.send(t, http.MethodPost, c.query, multipartType, c.body)
					stored := filepath.Join(k.root, "file", alias, how+".txt")
					content, err := os.ReadFile(stored)
					if !account.Allows(alias) {
						if a.status != http.StatusForbidden || len(a.Errors) != 1 || !strings.Contains(a.Errors[0].Message, alias) {
							t.Errorf("%d %+v", a.status, a)
						}
						if !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("it is stored: %v", err)
						}
						return
					}
					if a.status != http.StatusOK || string(content) != "text" {
						t.Fatalf("%d %+v, stored %q: %v", a.status, a, content, err)
					}
					if want := k.URL + "/static/file/" + alias + "/" + how + ".txt"; a.Result[0].FullPath != want {
						t.Errorf("address %s, want %s", a.Result[0].FullPath, want)
					}
				})
			}
		}
	}
}

// TestServeConfirms withdraws the right to upload before a request and while it is read: nothing is
// stored.
func TestServeConfirms(t *testing.T) { // not parallel: Caddy has globals
	k := serveKnown(t, tokens.Account{APIKey: "all"})
	for confirmed, want := range []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusOK} {
		calls := 0
		k.uploads.Confirm = func(running *mediaapp.App) bool {
			if active, err := mediaapp.Active(); err != nil || running != active {
				t.Errorf("asked for another app than the running one: %v", err)
			}
			calls++
			return calls <= confirmed
		}
		a := k.send(t, http.MethodPost, "?alias=one", multipartType, formOf(t, "a.txt"))
		_, err := os.Stat(filepath.Join(k.root, "file", "one", "a.txt"))
		if a.status != want || (err == nil) != (want == http.StatusOK) {
			t.Errorf("confirmed %d times: %d %+v, stored: %v", confirmed, a.status, a.Errors, err)
		}
	}
}

// TestServeRefuses what the endpoints refuse, counts it, and logs only what is not the
// caller's fault.
func TestServeRefuses(t *testing.T) { // not parallel: Caddy has globals
	k := serveKnown(t, tokens.Account{APIKey: "all"})
	for _, c := range []struct {
		name, method, query, contentType, body string
		status                                 int
		message                                string
	}{
		{"method", http.MethodPut, "", "text/plain", "x", 405, "use POST"},
		{"content type", http.MethodPost, "", "text/plain", "x", 415, "multipart/form-data"},
		{"no content type", http.MethodPost, "", "", "x", 415, "multipart/form-data"},
		{"no boundary", http.MethodPost, "", "multipart/form-data", "x", 400, "boundary"},
		{"long boundary", http.MethodPost, "", "multipart/form-data; boundary=" + strings.Repeat("x", 71), "x", 400, "boundary"},
		{"size", http.MethodPost, "", multipartType, strings.Repeat("x", 2049), 413, "2048"},
		{"alias twice", http.MethodPost, "?alias=one&alias=two", multipartType, formOf(t, "a.txt"), 400, "alias is sent twice"},
		{"sub folder twice", http.MethodPost, "?alias=one&sub_folder=a&sub_folder=a", multipartType, formOf(t, "a.txt"), 400, "sub_folder is sent twice"},
		{"unknown alias", http.MethodPost, "?alias=one", multipartType, formOf(t, "a.txt", "alias", "none"), 400, "unknown alias"},
		{"malformed", http.MethodPost, "?alias=one", multipartType, "--x\r\n", 400, ""},
		{"extension", http.MethodPost, "?alias=one", multipartType, formOf(t, "a.php"), 415, "php"},
	} {
		t.Run(c.name, func(t *testing.T) {
			counted := failuresCounted(t)
			a := k.send(t, c.method, c.query, c.contentType, c.body)
			if a.status != c.status || len(a.Errors) != 1 || !strings.Contains(a.Errors[0].Message, c.message) {
				t.Errorf("%d %+v, want %d %q", a.status, a.Errors, c.status, c.message)
			}
			if allow := a.header.Get("Allow"); (allow == http.MethodPost) != (c.status == 405) {
				t.Errorf("Allow: %q", allow)
			}
			if n := failuresCounted(t) - counted; n != 1 {
				t.Errorf("counted %v times", n)
			}
		})
	}
	if k.logs.Len() > 0 {
		t.Errorf("logged: %v", k.logs.All())
	}
	a := k.send(t, http.MethodPost, "?alias=broken", multipartType, formOf(t, "a.txt"))
	if a.status < 500 || len(a.Errors) != 1 {
		t.Errorf("a storage that cannot be used: %d %+v", a.status, a)
	}
	if entries := k.logs.FilterLevelExact(zap.ErrorLevel).All(); len(entries) != 1 || entries[0].ContextMap()["status"] != int64(a.status) {
		t.Errorf("logged: %v", k.logs.All())
	}
	if files, err := filepath.Glob(filepath.Join(k.root, "file", "*", "*")); len(files) > 0 || err != nil {
		t.Errorf("stored %v: %v", files, err)
	}
}

// failuresCounted is how many failed uploads of files the app has counted.
func failuresCounted(t *testing.T) float64 {
	t.Helper()
	ctx := caddy.ActiveContext()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "caddy_media_failed_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "endpoint" && label.GetValue() == "file" {
					total += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}
