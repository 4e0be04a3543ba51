package mediacmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
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

// TestUploadKinds: the endpoint follows the extension, unless it is named.
func TestUploadKinds(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"a.JPG": "/api/upload/image", "a.txt": "/api/upload/file", "a.jpg --as file": "/api/upload/file", "a.txt --as image": "/api/upload/image",
	} {
		f := newFakeService(t)
		name, flags, _ := strings.Cut(args, " ")
		args := append(strings.Fields(flags), aFile(t, name, "x"), "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "secret"))
		if _, _, err := run(t, uploadCommand(), args...); err != nil || f.uploads[0].URL.Path != want {
			t.Errorf("%q: error %v, want %s", args, err, want)
		}
	}
}

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
	_, _, err := run(t, uploadCommand(), aFile(t, "a.txt", "x"), "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "wrong"))
	if err == nil || !strings.Contains(err.Error(), "wrong API key or password") {
		t.Errorf("the command: error %v", err)
	}
	if f.logins != 2 || len(f.uploads) != 0 {
		t.Errorf("%d logins and %d uploads, want 2 and none", f.logins, len(f.uploads))
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

// TestUploadInterrupted: the messages distinguish files that were not sent, those that were not stored, and those
// that may have been stored.
func TestUploadInterrupted(t *testing.T) {
	for want, part := range map[string]int64{"interrupted: it was not stored": 1 << 20, "interrupted: it may have been stored": 64 << 20} {
		f := newFakeService(t)
		ctx, interrupt := context.WithCancelCause(t.Context())
		f.refuse["/api/upload/file"] = []http.HandlerFunc{func(_ http.ResponseWriter, r *http.Request) {
			io.CopyN(io.Discard, r.Body, part)
			interrupt(errors.New("a signal"))
			io.Copy(io.Discard, r.Body) // up to the end of the connection
			<-r.Context().Done()
		}}
		first, second := aFile(t, "a.txt", ""), aFile(t, "b.txt", "x")
		if err := os.Truncate(first, 32<<20); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := uploadCommand()
		cmd.SetOut(&out)
		if err := cmd.ParseFlags([]string{
			"--json", "--parallel", "1", "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "secret"),
		}); err != nil {
			t.Fatal(err)
		}
		cmd.SetContext(ctx)
		if err := cmd.RunE(cmd, []string{first, second}); !errors.Is(err, errReported) {
			t.Errorf("error %v, want %v", err, errReported)
		}
		messages := map[string]string{}
		for line := range strings.Lines(out.String()) {
			var result uploadResult
			if err := json.Unmarshal([]byte(line), &result); err != nil || result.Success {
				t.Fatalf("%v in %q", err, line)
			}
			messages[result.File] = result.Message
		}
		if messages[first] != want || messages[second] != "interrupted: it was not sent" {
			t.Errorf("%q, want %q", messages, want)
		}
	}
}

// TestUploadFolder: a folder is sent as sub folders, without hidden files and links.
func TestUploadFolder(t *testing.T) {
	home := t.TempDir()
	tree := filepath.Join(home, "holiday")
	stored(t, tree, "a.txt", "2026/b.txt", "2026/11/c.txt", ".hidden", ".git/config")
	stored(t, home, "alone.txt", ".named")
	for link, to := range map[string]string{"link.txt": "a.txt", "2026/folder": "..", "../shortcut": "holiday"} {
		if err := os.Symlink(to, filepath.Join(tree, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		args     []string
		want     []string // sub folder and name
		contains string   // in the output
	}{
		"a folder":             {[]string{"holiday"}, []string{"holiday a.txt", "holiday/2026 b.txt", "holiday/2026/11 c.txt"}, "3 of 3 files stored\nleft out: 4\n"},
		"with a slash":         {[]string{"holiday/2026/11/"}, []string{"11 c.txt"}, "1 of 1 files stored\n"},
		"below a sub folder":   {[]string{"holiday/2026/11", "--sub-folder", "x/y"}, []string{"x/y/11 c.txt"}, "1 of 1"},
		"in the root":          {[]string{"holiday/2026/11", "--sub-folder", "/"}, []string{"11 c.txt"}, "1 of 1"},
		"with files":           {[]string{"alone.txt", "holiday/2026/11", ".named"}, []string{" alone.txt", "11 c.txt", " .named"}, "3 of 3"},
		"a link to a folder":   {[]string{"shortcut"}, []string{"shortcut a.txt", "shortcut/2026 b.txt", "shortcut/2026/11 c.txt"}, "3 of 3"},
		"the working folder":   {[]string{"."}, []string{"home alone.txt", "home/holiday a.txt", "home/holiday/2026 b.txt", "home/holiday/2026/11 c.txt"}, "4 of 4"},
		"left out, with words": {[]string{"holiday"}, []string{"holiday a.txt", "holiday/2026 b.txt", "holiday/2026/11 c.txt"}, "holiday/.git: left out, it is hidden or not a regular file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(home)
			f := newFakeService(t)
			args := append(test.args, "--server", f.URL, "--api-key", "site", "--password-file", aFile(t, "password", "secret"))
			out, messages, err := run(t, uploadCommand(), args...)
			if err != nil || !strings.Contains(out, test.contains) {
				t.Fatalf("%q, %q, error %v, want %q", out, messages, err, test.contains)
			}
			got := make([]string, 0, len(f.forms))
			for _, form := range f.forms {
				got = append(got, strings.Join(form.Value["sub_folder"], ",")+" "+form.File["files[]"][0].Filename)
			}
			want := make([]string, len(test.want))
			for i := range want {
				want[i] = strings.Replace(test.want[i], "home", filepath.Base(home), 1)
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}
