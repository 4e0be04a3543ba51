package mediacmd

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestUploadKeepsTheToken(t *testing.T) {
	t.Parallel()
	f, folder := newFakeService(t), t.TempDir()
	job := upload{File: aFile(t, "a.txt", "x"), Kind: "file", Sent: ignore}
	for range 3 {
		if _, err := f.client(t, folder).upload(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if f.logins != 1 {
		t.Errorf("%d logins, want 1", f.logins)
	}
	f.valid = "" // revoked
	for range 2 {
		if _, err := f.client(t, folder).upload(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if f.logins != 2 {
		t.Errorf("%d logins, want 2", f.logins)
	}
	late := f.client(t, folder)
	late.now = func() time.Time { return noon.Add(time.Hour) } // it has expired
	refusals := len(f.uploads)
	if _, err := late.upload(t.Context(), job); err != nil || f.logins != 3 || len(f.uploads) != refusals+1 {
		t.Errorf("%v, %d logins, %d uploads, want 3 and 1", err, f.logins, len(f.uploads)-refusals)
	}
}

// TestUploadsRenewTogether: several uploads with a rejected token share one new token.
func TestUploadsRenewTogether(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	c := f.client(t, t.TempDir())
	c.token = "old"
	path := aFile(t, "a.txt", "x")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := c.upload(t.Context(), upload{File: path, Kind: "file", Sent: ignore}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if f.logins != 1 || c.asked != 1 {
		t.Errorf("%d logins, asked %d times, want 1", f.logins, c.asked)
	}
}

func TestUploadTokenRefusedAgain(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	no := answering(http.StatusUnauthorized, `{"errors":[{"message":"no"}]}`)
	f.refuse["/api/upload/file"] = []http.HandlerFunc{no, no, no}
	_, err := f.client(t, t.TempDir()).upload(t.Context(), upload{File: aFile(t, "a.txt", "x"), Kind: "file", Sent: ignore})
	wantRefused(t, err, http.StatusUnauthorized, "no")
	if len(f.uploads) != 2 || f.logins != 2 {
		t.Errorf("%d uploads and %d logins, want 2", len(f.uploads), f.logins)
	}
}

// TestUploadWrongPassword: a refused password is not sent again, because the service limits failed
// logins.
func TestUploadWrongPassword(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	c := f.client(t, t.TempDir())
	c.password = func(context.Context) (string, error) { return "wrong", nil }
	for range 5 {
		_, err := c.upload(t.Context(), upload{File: aFile(t, "a.txt", "x"), Kind: "file", Sent: ignore})
		wantRefused(t, err, http.StatusUnauthorized, "wrong API key or password")
	}
	if f.logins != 1 || len(f.uploads) != 0 {
		t.Errorf("%d logins and %d uploads, want 1 and none", f.logins, len(f.uploads))
	}
}

func TestTokenFile(t *testing.T) {
	t.Parallel()
	file := newTokenFile("https://example.com", "site")
	file.path = filepath.Join(t.TempDir(), "tokens", "kept.json")
	if got := file.read(noon); got != "" {
		t.Errorf("token %q of nowhere", got)
	}
	file.write("first", noon.Add(time.Minute))
	file.write("second", noon.Add(time.Hour))
	if got := file.read(noon); got != "second" {
		t.Errorf("token %q, want the second", got)
	}
	for path, want := range map[string]os.FileMode{file.path: 0o600, filepath.Dir(file.path): 0o700} {
		stat, err := os.Stat(path)
		if err != nil || stat.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v, want %v", path, stat.Mode().Perm(), err, want)
		}
	}
	if names, err := filepath.Glob(filepath.Join(filepath.Dir(file.path), "*")); len(names) != 1 || err != nil {
		t.Errorf("files %q, %v, want one", names, err)
	}
	if got := file.read(noon.Add(time.Hour)); got != "" {
		t.Errorf("token %q has expired", got)
	}
	for _, other := range []tokenFile{{file.path, "https://example.org", "site"}, {file.path, "https://example.com", "other"}} {
		if got := other.read(noon); got != "" {
			t.Errorf("token %q of somebody else", got)
		}
	}
	if a, b := newTokenFile("https://a", "b"), newTokenFile("https://a", "c"); a.path == b.path {
		t.Error("two accounts share a file")
	}
}

func TestPasswordSource(t *testing.T) {
	noTerminal, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer noTerminal.Close()
	for _, c := range []struct{ file, variable, want, fails string }{
		{file: "of the file\n", variable: "of the environment", want: "of the file"},
		{file: " with spaces \r\n", want: " with spaces "},
		{variable: "of the environment", want: "of the environment"},
		{file: "\n", variable: "of the environment", fails: "is empty"},
		{fails: "no password: set MEDIA_PASSWORD"},
	} {
		var prompt bytes.Buffer
		source := &passwordSource{terminal: noTerminal, prompt: &prompt}
		if c.file != "" {
			source.file = aFile(t, "password", c.file)
		}
		t.Setenv(passwordVariable, c.variable)
		got, err := source.get(t.Context())
		if got != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if prompt.Len() > 0 {
			t.Errorf("%+v: asked %q", c, prompt.String())
		}
	}
}
