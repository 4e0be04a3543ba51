package mediacmd

import (
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestUploadRenewsTheToken: one token serves all files of a run, until the service rejects it.
func TestUploadRenewsTheToken(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	c := f.client(t)
	for _, logins := range []int{1, 1, 2, 2} {
		if err := c.sendFile(t); err != nil || f.logins != logins {
			t.Fatalf("%d logins, want %d; error %v", f.logins, logins, err)
		}
		if len(f.forms) == 2 {
			f.valid = "" // revoked
		}
	}
}

// TestUploadsRenewTogether: several uploads with a rejected token share one new token.
func TestUploadsRenewTogether(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	c := f.client(t)
	c.token = "old"
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := c.sendFile(t); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if f.logins != 1 {
		t.Errorf("%d logins, want 1", f.logins)
	}
}

func TestUploadTokenRefusedAgain(t *testing.T) {
	t.Parallel()
	f := newFakeService(t)
	no := answering(http.StatusUnauthorized, `{"errors":[{"message":"no"}]}`)
	f.refuse["/api/upload/file"] = []http.HandlerFunc{no, no, no}
	err := f.client(t).sendFile(t)
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
	c := f.client(t)
	c.password = "wrong"
	for range 5 {
		wantRefused(t, c.sendFile(t), http.StatusUnauthorized, "wrong API key or password")
	}
	if f.logins != 1 || len(f.uploads) != 0 {
		t.Errorf("%d logins and %d uploads, want 1 and none", f.logins, len(f.uploads))
	}
}

// TestPassword: the password is read from the file, else from the environment.
func TestPassword(t *testing.T) {
	for _, c := range []struct{ file, variable, want, fails string }{
		{file: "of the file\n", variable: "of the environment", want: "of the file"},
		{file: " with spaces \r\n", want: " with spaces "},
		{variable: "of the environment", want: "of the environment"},
		{file: "\n", variable: "of the environment", fails: "is empty"},
		{fails: "no password: set MEDIA_PASSWORD"}, // go test has no terminal
	} {
		var u uploading
		if c.file != "" {
			u.passwordFile = aFile(t, "password", c.file)
		}
		t.Setenv("MEDIA_PASSWORD", c.variable)
		got, err := u.password(t.Context(), nil)
		if got != c.want || (err != nil) != (c.fails != "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}
