package mediacmd

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUploadSendsTheForm(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	path := aFile(t, `a "strange" name ě.png`, strings.Repeat("x", 300_000))
	item, sent, err := f.client(t).send(t, path, upload{kind: "image", alias: "photos", subFolder: "a/b"})
	if want := (uploaded{FullPath: "https://cdn/a.png", Filename: "a.png", WebP: "https://cdn/a.png.webp"}); !reflect.DeepEqual(item, want) || err != nil {
		t.Fatalf("%+v, %v, want %+v", item, err, want)
	}
	r, form := f.uploads[0], f.forms[0]
	file := form.File["files[]"][0]
	if r.URL.Path != "/api/upload/image" || form.Value["alias"][0] != "photos" || form.Value["sub_folder"][0] != "a/b" ||
		file.Filename != filepath.Base(path) || file.Size != 300_000 {
		t.Errorf("%s with %+v and the file %q of %d bytes", r.URL.Path, form.Value, file.Filename, file.Size)
	}
	if r.ContentLength < 300_000 || r.TransferEncoding != nil {
		t.Errorf("Content-Length %d, Transfer-Encoding %q", r.ContentLength, r.TransferEncoding)
	}
	if sent != 300_000 {
		t.Errorf("%d bytes counted, want 300,000", sent)
	}
}

func TestUploadPatience(t *testing.T) {
	t.Parallel()
	const second = time.Second
	later := time.Now().UTC().Add(99 * second).Format(http.TimeFormat)
	for name, c := range map[string]struct {
		path    string
		answers []http.HandlerFunc
		waits   []time.Duration
		status  int // 0: it is stored in the end
	}{
		"upload":        {"/api/upload/file", []http.HandlerFunc{busy("7"), busy("")}, []time.Duration{7 * second, 2 * second}, 0},
		"date":          {"/api/upload/file", []http.HandlerFunc{busy(later)}, []time.Duration{99 * second}, 0},
		"login":         {"/api/auth/generateToken", []http.HandlerFunc{answering(429, "{}", "Retry-After", "3")}, []time.Duration{3 * second}, 0},
		"not for ever":  {"/api/upload/file", slices.Repeat([]http.HandlerFunc{busy("1")}, 9), slices.Repeat([]time.Duration{second}, 4), 503},
		"not so long":   {"/api/upload/file", []http.HandlerFunc{busy("3600")}, nil, 503},
		"not a refusal": {"/api/upload/file", []http.HandlerFunc{answering(415, `{"errors":[{"message":"no"}]}`)}, nil, 415},
		"not a failure": {"/api/upload/file", []http.HandlerFunc{answering(502, `{}`)}, nil, 502},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeService(t)
			f.refuse[c.path] = c.answers
			client := f.client(t)
			_, sent, err := client.send(t, aFile(t, "a.txt", "0123456789"), upload{kind: "file"})
			if c.status != 0 {
				wantRefused(t, err, c.status, "")
			} else if err != nil || sent != 10 {
				t.Errorf("%d bytes counted, error %v", sent, err)
			}
			isSame := func(got, want time.Duration) bool { // less of a pause is left until a date
				return got == want || want > time.Minute && 0 < got && got < want
			}
			if !slices.EqualFunc(client.waits, c.waits, isSame) {
				t.Errorf("waited %v, want %v", client.waits, c.waits)
			}
		})
	}
}

// TestUploadBrokenOff: a file that may have been stored is sent again under the same key, and not for
// ever.
func TestUploadBrokenOff(t *testing.T) {
	t.Parallel()
	for breaks, fails := range map[int]bool{1: false, 4: false, 5: true} {
		keys := map[string]int{}
		f := newFakeService(t)
		for n := range breaks {
			f.refuse["/api/upload/file"] = append(f.refuse["/api/upload/file"], func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				keys[r.Header.Get("Idempotency-Key")]++
				if n == 1 {
					answering(http.StatusConflict, `{"errors":[{"message":"under way"}]}`, "Retry-After", "1")(w, r)
					return
				}
				panic(http.ErrAbortHandler)
			})
		}
		err := f.client(t).sendFile(t)
		f.mu.Lock()
		if (err != nil) != fails || len(keys) != 1 || keys[""] != 0 || len(f.uploads) != min(breaks+1, busyTries) {
			t.Errorf("%d breaks: error %v after %d uploads with the keys %v", breaks, err, len(f.uploads), keys)
		}
		f.mu.Unlock()
	}
}

// TestUploadFollowsNobody: redirects are not followed, so the token is not sent elsewhere.
func TestUploadFollowsNobody(t *testing.T) {
	t.Parallel()
	f, other := newFakeService(t), newFakeService(t)
	f.refuse["/api/upload/file"] = []http.HandlerFunc{answering(http.StatusTemporaryRedirect, "", "Location", other.URL)}
	err := f.client(t).sendFile(t)
	wantRefused(t, err, http.StatusTemporaryRedirect, "at another address: 307, "+other.URL)
	if len(other.uploads) != 0 {
		t.Error("it was followed")
	}
}

// TestUploadStrangeAnswers: control sequences in an answer do not reach the terminal.
func TestUploadStrangeAnswers(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]http.HandlerFunc{
		"the answer is not that of a media service":  answering(200, `<html>`),
		"the answer is not that of a media service ": answering(200, `{"success":true,"result":[]}`),
		"the server answered 404 Not Found":          answering(404, `<html>`),
		"no?[31m":                                    answering(400, `{"errors":[{"message":"no\u001b[31m"}]}`),
	} {
		f := newFakeService(t)
		f.refuse["/api/upload/file"] = []http.HandlerFunc{answer}
		err := f.client(t).sendFile(t)
		if err == nil || err.Error() != strings.TrimSpace(want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestUploadRefusedEarly: a large file that is refused early is not sent completely.
func TestUploadRefusedEarly(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	f := newFakeService(t)
	f.refuse["/api/upload/file"] = []http.HandlerFunc{answering(http.StatusForbidden, `{"errors":[{"message":"not here"}]}`, "Connection", "close")}
	path := aFile(t, "a.txt", "")
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	_, sent, err := f.client(t).send(t, path, upload{kind: "file"})
	wantRefused(t, err, http.StatusForbidden, "not here")
	if sent > 0 {
		t.Errorf("%d bytes sent", sent)
	}
}

func TestUploadUntrustedCertificate(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	f.Server = httptest.NewUnstartedServer(f)
	f.Config.ErrorLog = nil
	f.StartTLS()
	t.Cleanup(f.Close)
	err := f.client(t).sendFile(t)
	if err == nil || !strings.Contains(err.Error(), "certificate") || f.logins != 0 {
		t.Errorf("error %v after %d logins", err, f.logins)
	}
}

func TestUploadNoFile(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file or directory",
		os.DevNull:                         "it is not a regular file",
	} {
		_, messages, err := run(t, uploadCommand(), path, "--as", "file", "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "secret"))
		if !errors.Is(err, errReported) || messages != path+": "+want+"\n" {
			t.Errorf("%q, error %v, want %s", messages, err, want)
		}
	}
}

func TestServerAddress(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://media.example.com":     "https://media.example.com",
		"https://media.example.com/":    "https://media.example.com",
		"https://example.com:8443/cdn/": "https://example.com:8443/cdn",
		"http://localhost:8080":         "http://localhost:8080",
		"http://127.0.0.1":              "http://127.0.0.1",
		"http://[::1]:80":               "http://[::1]:80",
		"http://media.example.com":      "",
		"http://localhost.example.com":  "",
		"http://10.0.0.1":               "",
		"media.example.com":             "",
		"localhost:8080":                "",
		"https://":                      "",
		"https://a:b@example.com":       "",
		"https://example.com?a":         "",
		"https://example.com#a":         "",
		"ftp://example.com":             "",
	} {
		got, err := serverAddress(address, false)
		switch {
		case want == "" && err == nil:
			t.Errorf("%s is taken as %s", address, got)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%s: %v, %v, want %s", address, got, err, want)
		}
	}
	if _, err := serverAddress("http://media.example.com", true); err != nil {
		t.Error(err)
	}
}
