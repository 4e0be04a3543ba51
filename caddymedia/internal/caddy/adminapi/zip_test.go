package adminapi

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// zipSite returns a handler of the panel and its log.
func zipSite(t *testing.T) (*Handler, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	h, err := NewEditor(Off, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	return h, logs
}

// as returns a handler for the requests of a user of the panel.
func as(user string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		h.ServeHTTP(w, r.WithContext(WithActor(r.Context(), item.Actor{Origin: item.OriginPanel, Account: user})))
	})
}

// form returns the form of a zip.
func form(filenames ...string) string { return url.Values{"filename": filenames}.Encode() }

// unpacked returns the contents of a zip by their names, after a check by another program if there
// is one.
func unpacked(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	if program := servers.Installed("unzip"); program != "" {
		file := filepath.Join(t.TempDir(), "a.zip")
		if err := os.WriteFile(file, packed, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, "-t", file).CombinedOutput(); err != nil {
			t.Errorf("unzip -t: %v\n%s", err, out)
		}
	}
	reader, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range reader.File {
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(content)
		if err != nil || file.Method != zip.Store {
			t.Errorf("%s: method %d, error %v", file.Name, file.Method, err)
		}
		all[file.Name] = string(read)
	}
	if len(all) != len(reader.File) {
		t.Errorf("%d entries have %d names", len(reader.File), len(all))
	}
	return all
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestZip(t *testing.T) {
	root := load(t, `{"signing_key": ["a key of thirty-two bytes, or more"], "storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"image_aliases": {"photos": {"webp": {}, "private": {}}}}`)
	folder := root + "/img/photos/"
	big := strings.Repeat("0123456789", 100_000)
	modified := time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, content := range map[string]string{
		"a.jpg": "first", "26-11/Žluťoučký kůň 🐎.png": "second", "empty.gif": "", "big.jpg": big, "C:/x.jpg": "drive", "C_/x.jpg": "same name",
	} {
		write(t, folder+name, content)
	}
	if err := os.Chtimes(folder+"a.jpg", modified, modified); err != nil {
		t.Fatal(err)
	}
	h, _ := zipSite(t)
	w := ask(t, as("alice", h), http.MethodPost, "/zip/img/photos",
		form("26-11/Žluťoučký kůň 🐎.png", "a.jpg", "empty.gif", "a.jpg", "big.jpg", "C:/x.jpg", "C_/x.jpg"))
	for name, want := range map[string]string{
		"Content-Type": "application/zip", "Content-Disposition": "attachment; filename=photos.zip",
		"Content-Length": strconv.Itoa(w.Body.Len()), "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := w.Header().Get(name); got != want || w.Code != http.StatusOK {
			t.Errorf("status %d, %s %q, want %q", w.Code, name, got, want)
		}
	}
	all := unpacked(t, w.Body.Bytes())
	for name, content := range map[string]string{
		"a.jpg": "first", "26-11/Žluťoučký kůň 🐎.png": "second", "empty.gif": "", "big.jpg": big, "C_/x.jpg": "drive", "_C_/x.jpg": "same name",
	} {
		if got, ok := all[name]; !ok || got != content {
			t.Errorf("%s: %d bytes, %t", name, len(got), ok)
		}
	}
	reader, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), int64(w.Body.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if got := reader.File[1]; got.Name != "a.jpg" || !got.Modified.Equal(modified) || len(reader.File) != 6 {
		t.Errorf("%d entries, the second is %s of %v", len(reader.File), got.Name, got.Modified)
	}
}

func TestZipRefusals(t *testing.T) {
	root := load(t, oneFolder)
	files(t, root+"/img/photos", "a.jpg", "a.jpg.webp", "@uploads/x.jpg")
	h, _ := zipSite(t)
	many := make([]string, maxZipItems+1)
	for i := range many {
		many[i] = fmt.Sprint(i, ".jpg")
	}
	for name, c := range map[string]struct {
		address, body string
		status        int
		text          string
	}{
		"none":           {"img/photos", "", 400, "1 to 1000 items, not 0"},
		"too many":       {"img/photos", form(many...), 400, "not 1001"},
		"unknown alias":  {"img/none", form("a.jpg"), 404, "no alias"},
		"unknown kind":   {"sound/photos", form("a.jpg"), 404, "no alias"},
		"missing":        {"img/photos", form("a.jpg", "b.jpg", "c.jpg", "b.jpg"), 404, `not stored any more, such as \"b.jpg\"`},
		"variant":        {"img/photos", form("a.jpg.webp"), 404, "not stored"},
		"unfinished":     {"img/photos", form("@uploads/x.jpg"), 404, "not stored"},
		"invalid":        {"img/photos", form("../photos/a.jpg"), 404, "not stored"},
		"a large body":   {"img/photos", form(strings.Repeat("x", 5<<20)), 413, "form"},
		"malformed":      {"img/photos", "filename=%zz", 400, "form"},
		"a path further": {"img/photos/a.jpg", form("a.jpg"), 404, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(t, as("alice", h), http.MethodPost, "/zip/"+c.address, c.body)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || w.Header().Get("Content-Disposition") != "" {
				t.Errorf("%d %v %s, want %d %s", w.Code, w.Header(), w.Body, c.status, c.text)
			}
		})
	}
	// The page reads a refusal in its frame.
	w := ask(t, as("alice", h), http.MethodPost, "/zip/img/photos", "")
	if policy := w.Header().Get("Content-Security-Policy"); policy != "default-src 'none'; frame-ancestors 'self'" {
		t.Errorf("policy %q", policy)
	}
	wantError(t, ask(t, h, http.MethodGet, "/zip/img/photos", ""), http.StatusMethodNotAllowed, "POST")
	wantError(t, ask(t, New(), http.MethodPost, "/zip/img/photos", form("a.jpg")), http.StatusNotFound, "nothing")
}

// TestZipStorageDown: a failing storage is reported as an error, and not as missing items.
func TestZipStorageDown(t *testing.T) {
	load(t, `{"storages": {"main": {"driver": {"name": "foreign", "fault": "unavailable", "word": "hidden word"}}}, "file_aliases": {"docs": {}}}`)
	h, _ := zipSite(t)
	w := ask(t, as("alice", h), http.MethodPost, "/zip/file/docs", form("a.pdf", "b.pdf"))
	wantError(t, w, http.StatusServiceUnavailable, ". ")
	if strings.Contains(w.Body.String(), "hidden word") {
		t.Error(w.Body)
	}
}

// TestZipChanged: the download breaks if an item is replaced or removed meanwhile. The log has the
// reason.
func TestZipChanged(t *testing.T) {
	root := load(t, oneFolder)
	folder := root + "/img/photos/"
	for name, c := range map[string]struct {
		change func(path string) error
		text   string
	}{
		"replaced": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("other"), 0o600), os.Rename(path+"2", path))
		}, "replaced"},
		"shortened": {func(path string) error { return os.Truncate(path, 3) }, "replaced"},
		"longer":    {func(path string) error { return os.WriteFile(path, []byte("longer than before"), 0o600) }, "replaced"},
		"deleted":   {os.Remove, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			write(t, folder+"a.jpg", "")
			if err := os.Truncate(folder+"a.jpg", 64<<20); err != nil { // it does not fit into the buffers
				t.Fatal(err)
			}
			write(t, folder+"b.jpg", "bytes")
			h, logs := zipSite(t)
			server := httptest.NewServer(as("alice", h))
			defer server.Close()
			answer := post(t, server.URL+"/zip/img/photos", form("a.jpg", "b.jpg")) //nolint:bodyclose // post closes it
			if err := c.change(folder + "b.jpg"); err != nil {
				t.Fatal(err)
			}
			got, err := io.Copy(io.Discard, answer.Body)
			if !errors.Is(err, io.ErrUnexpectedEOF) || got >= answer.ContentLength {
				t.Errorf("%d bytes, error %v", got, err)
			}
			entries := logs.FilterMessage("sending a zip").FilterLevelExact(zap.ErrorLevel).All()
			if len(entries) != 1 || !strings.Contains(fmt.Sprint(entries[0].ContextMap()["error"]), c.text) ||
				!strings.Contains(fmt.Sprint(entries[0].ContextMap()["error"]), "b.jpg") {
				t.Errorf("logged %+v", entries)
			}
		})
	}
}

// post sends a form. The test closes the body of the answer at its end.
func post(t *testing.T, address, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// zipsRunning returns the number of running downloads and of their users.
func zipsRunning() (all, users int) {
	zips.mu.Lock()
	defer zips.mu.Unlock()
	return zips.all, len(zips.byUser)
}

// TestZipLeft: the download ends when its client leaves.
func TestZipLeft(t *testing.T) {
	root := load(t, oneFolder)
	write(t, root+"/img/photos/a.jpg", "")
	if err := os.Truncate(root+"/img/photos/a.jpg", 1<<30); err != nil {
		t.Fatal(err)
	}
	h, logs := zipSite(t)
	ended := make(chan any, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			ended <- reason
			panic(reason)
		}()
		as("alice", h).ServeHTTP(w, r)
	}))
	defer server.Close()
	answer := post(t, server.URL+"/zip/img/photos", form("a.jpg"))
	if _, err := io.CopyN(io.Discard, answer.Body, 1<<20); err != nil || answer.ContentLength < 1<<30 {
		t.Errorf("of %d bytes: %v", answer.ContentLength, err)
	}
	if all, _ := zipsRunning(); all != 1 {
		t.Errorf("%d downloads", all)
	}
	answer.Body.Close()
	if reason, _ := (<-ended).(error); !errors.Is(reason, http.ErrAbortHandler) {
		t.Errorf("ended with %v", reason)
	}
	if n := logs.FilterMessage("sending a zip").FilterLevelExact(zap.DebugLevel).Len(); n != 1 || logs.FilterLevelExact(zap.ErrorLevel).Len() > 0 {
		t.Errorf("logged %+v", logs.All())
	}
	if all, users := zipsRunning(); all != 0 || users != 0 {
		t.Errorf("left are %d downloads of %d users", all, users)
	}
}

// TestZipMany: a user, and all users together, have a bounded number of downloads.
func TestZipMany(t *testing.T) {
	root := load(t, oneFolder)
	write(t, root+"/img/photos/a.jpg", "x")
	h, _ := zipSite(t)
	begin := func(user string) func() {
		t.Helper()
		ended, ok := zips.begin(user)
		if !ok {
			t.Fatalf("%s is refused", user)
		}
		t.Cleanup(ended)
		return ended
	}
	for range maxUserZips {
		begin("panel alice")
	}
	w := ask(t, as("alice", h), http.MethodPost, "/zip/img/photos", form("a.jpg"))
	wantError(t, w, http.StatusTooManyRequests, "downloaded already")
	if w.Header().Get("Retry-After") == "" {
		t.Errorf("%v", w.Header())
	}
	if w := ask(t, as("bob", h), http.MethodPost, "/zip/img/photos", form("a.jpg")); w.Code != http.StatusOK {
		t.Errorf("another user: %d %s", w.Code, w.Body)
	}
	for i := range maxZips - maxUserZips {
		begin(fmt.Sprint("panel ", i))
	}
	w = ask(t, as("bob", h), http.MethodPost, "/zip/img/photos", form("a.jpg"))
	wantError(t, w, http.StatusTooManyRequests, "downloaded already")
}

// TestZipSize: the size is that of the writer's zip, for all shapes that differ in their parts.
func TestZipSize(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	item := func(size int64, name string, modified time.Time) zipItem {
		return zipItem{name: name, info: storagedrivers.Info{Size: size, ModTime: modified}}
	}
	shapes := map[string][]zipItem{
		"none":         nil,
		"empty":        {item(0, "a", now)},
		"no time":      {item(5, "a", time.Time{}), item(0, "b", now)},
		"old times":    {item(5, "a", time.Unix(-1, 0)), item(5, "b", time.Unix(1<<33, 0))},
		"unicode":      {item(1, "Žluťoučký kůň/🐎.png", now), item(2, "~", now)},
		"long name":    {item(70_000, strings.Repeat("x/", 500)+"y", now)},
		"below":        {item(zip64From-1, "a", now)},
		"at":           {item(zip64From, "a", now), item(1, "b", now)},
		"above":        {item(zip64From+1, "a", time.Time{})},
		"offset below": {item(zip64From-1-zipLocalHeader-1-zipDescriptor, "a", time.Time{}), item(1, "b", now)},
		"offset at":    {item(zip64From-zipLocalHeader-1-zipDescriptor, "a", time.Time{}), item(1, "b", now)},
		"several":      {item(1<<31, "a", now), item(1<<31, "b", now), item(0, "c", now), item(7, "d", now)},
	}
	for _, n := range []int{1<<16 - 2, 1<<16 - 1, 1 << 16} {
		many := make([]zipItem, n)
		for i := range many {
			many[i] = item(0, fmt.Sprint(i), now)
		}
		shapes[fmt.Sprint(n, " items")] = many
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 50 {
		items := make([]zipItem, random.IntN(40))
		for j := range items {
			items[j] = item(random.Int64N(3000), strings.Repeat("ň", 1+random.IntN(300)), time.Unix(random.Int64N(3), 0))
		}
		shapes[fmt.Sprint("random ", i)] = items
	}
	for name, items := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, want := zipSize(items), writtenSize(t, items); got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		})
	}
}

// writtenSize returns the size of a zip of zeros.
func writtenSize(t *testing.T, items []zipItem) int64 {
	t.Helper()
	to := &countingWriter{to: io.Discard}
	w := zip.NewWriter(to)
	zeros := make([]byte, 1<<20)
	for _, item := range items {
		entry, err := w.CreateHeader(item.header())
		if err != nil {
			t.Fatal(err)
		}
		for left := item.info.Size; left > 0; left -= min(left, int64(len(zeros))) {
			if _, err := entry.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return to.sent
}
