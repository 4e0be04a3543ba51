package api

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddymedia/media/caddymedia/media"
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
	h.selections = newSelections()
	return h, logs
}

// as returns a handler for the requests of a user of the panel.
func as(user string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor := media.Actor{Origin: media.OriginPanel, Account: user}
		h.ServeHTTP(w, r.WithContext(WithActor(r.Context(), actor)))
	})
}

func zipBody(t *testing.T, kind media.Kind, alias string, filenames ...string) string {
	t.Helper()
	body, err := json.Marshal(zipRequest{kind, alias, filenames})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// selectZip posts a selection and returns the answer.
func selectZip(t *testing.T, h http.Handler, kind media.Kind, alias string, filenames ...string) zipAnswer {
	t.Helper()
	return decoded[zipAnswer](t, ask(t, h, http.MethodPost, "/zip", zipBody(t, kind, alias, filenames...)), http.StatusOK)
}

// route returns the route of an address that is relative to the page of the panel.
func route(t *testing.T, answer zipAnswer) string {
	t.Helper()
	rest, ok := strings.CutPrefix(answer.Address, "api/")
	if !ok {
		t.Fatalf("address %q", answer.Address)
	}
	return "/" + rest
}

// unpacked returns the contents of a zip by their names, after a check by another program if there is
// one.
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
	root := load(t, oneFolder)
	folder := root + "/img/photos/"
	big := strings.Repeat("0123456789", 100_000)
	modified := time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, content := range map[string]string{
		"a.jpg": "first", "a.jpg.webp": "variant", "26-11/Žluťoučký kůň 🐎.png": "second", "empty.gif": "", "big.jpg": big,
		"C:/x.jpg": "drive", "C_/x.jpg": "same name",
	} {
		write(t, folder+name, content)
	}
	if err := os.Chtimes(folder+"a.jpg", modified, modified); err != nil {
		t.Fatal(err)
	}
	h, _ := zipSite(t)
	names := []string{
		"26-11/Žluťoučký kůň 🐎.png", "a.jpg", "none.jpg", "a.jpg.webp", "../docs/x", "/etc/passwd", `a\b.jpg`, "26-11",
		"empty.gif", "a.jpg", "none.jpg", "big.jpg", "C:/x.jpg", "C_/x.jpg", "",
	}
	answer := selectZip(t, as("alice", h), media.Image, "photos", names...)
	if want := []string{"none.jpg", "a.jpg.webp", "../docs/x", "/etc/passwd", `a\b.jpg`, "26-11", ""}; !slices.Equal(answer.Missing, want) ||
		answer.Items != 6 || !strings.HasSuffix(answer.Address, "/photos.zip") {
		t.Errorf("%+v, want the missing %q", answer, want)
	}
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodGet} {
		w := ask(t, as("alice", h), method, route(t, answer), "")
		for name, want := range map[string]string{
			"Content-Type": "application/zip", "Content-Disposition": "attachment; filename=photos.zip",
			"Content-Length": fmt.Sprint(answer.Size), "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		} {
			if got := w.Header().Get(name); got != want || w.Code != http.StatusOK {
				t.Errorf("%s: status %d, %s %q, want %q", method, w.Code, name, got, want)
			}
		}
		if method == http.MethodHead {
			if w.Body.Len() > 0 {
				t.Errorf("HEAD has a body of %d bytes", w.Body.Len())
			}
			continue
		}
		if int64(w.Body.Len()) != answer.Size {
			t.Errorf("%d bytes, want %d", w.Body.Len(), answer.Size)
		}
		for name, content := range map[string]string{
			"a.jpg": "first", "26-11/Žluťoučký kůň 🐎.png": "second", "empty.gif": "", "big.jpg": big,
			"C_/x.jpg": "drive", "_C_/x.jpg": "same name",
		} {
			if got, ok := unpacked(t, w.Body.Bytes())[name]; !ok || got != content {
				t.Errorf("%s: %d bytes, %t", name, len(got), ok)
			}
		}
		reader, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), answer.Size)
		if err != nil {
			t.Fatal(err)
		}
		if got := reader.File[1]; got.Name != "a.jpg" || !got.Modified.Equal(modified) || len(reader.File) != 6 {
			t.Errorf("%d entries, the second is %s of %v", len(reader.File), got.Name, got.Modified)
		}
	}
}

// TestZipPrivate: the zip has the items of a private alias, whose addresses need a signature.
func TestZipPrivate(t *testing.T) {
	root := load(t, `{"signing_key": ["a key of thirty-two bytes, or more"], "storages": {"main": {"driver": {"name": "local", "root": "$ROOT"}}},
		"file_aliases": {"papers": {"private": {}}}}`)
	write(t, root+"/file/papers/a.txt", "secret")
	h, _ := zipSite(t)
	answer := selectZip(t, h, media.File, "papers", "a.txt")
	if got := unpacked(t, ask(t, h, http.MethodGet, route(t, answer), "").Body.Bytes()); got["a.txt"] != "secret" || len(answer.Missing) != 0 {
		t.Errorf("%v %v", got, answer.Missing)
	}
}

func TestZipRefusals(t *testing.T) {
	load(t, oneFolder)
	h, _ := zipSite(t)
	many := make([]string, maxZipItems+1)
	for i := range many {
		many[i] = fmt.Sprint(i, ".jpg")
	}
	for name, c := range map[string]struct {
		body   string
		status int
		text   string
	}{
		"no JSON":          {"x", 400, "no JSON"},
		"none":             {zipBody(t, media.Image, "photos"), 400, "1 to 1000 items, not 0"},
		"too many":         {zipBody(t, media.Image, "photos", many...), 400, "not 1001"},
		"unknown alias":    {zipBody(t, media.Image, "none", "a.jpg"), 404, "no alias"},
		"unknown kind":     {zipBody(t, "sound", "photos", "a.jpg"), 404, "no alias"},
		"all are missing":  {zipBody(t, media.Image, "photos", many[1:]...), 404, "None of these items"},
		"a large body":     {zipBody(t, media.Image, "photos", strings.Repeat("x", maxBody)), 413, "1 MiB"},
		"an invalid name":  {zipBody(t, media.Image, "photos", "../a.jpg"), 404, "None of these items"},
		"an unknown field": {`{"kind":"img","alias":"photos","filenames":["a"],"x":1}`, 400, "no JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, ask(t, h, http.MethodPost, "/zip", c.body), c.status, c.text)
		})
	}
	wantError(t, ask(t, h, http.MethodGet, "/zip", ""), http.StatusMethodNotAllowed, "POST")
	wantError(t, ask(t, New(), http.MethodPost, "/zip", zipBody(t, media.Image, "photos", "a.jpg")), http.StatusNotFound, "nothing")
	wantError(t, ask(t, New(), http.MethodGet, "/zip/x/photos.zip", ""), http.StatusNotFound, "nothing")
}

// TestZipStorageDown: a failing storage is reported as an error, and not as missing items.
func TestZipStorageDown(t *testing.T) {
	load(t, `{"storages": {"main": {"driver": {"name": "foreign", "fault": "unavailable", "word": "hidden word"}}}, "file_aliases": {"docs": {}}}`)
	h, _ := zipSite(t)
	w := ask(t, h, http.MethodPost, "/zip", zipBody(t, media.File, "docs", "a.pdf", "b.pdf"))
	wantError(t, w, http.StatusServiceUnavailable, ". ")
	if strings.Contains(w.Body.String(), "hidden word") {
		t.Error(w.Body)
	}
}

// TestZipUser: only the user of the selection can download it, until the selection has
// expired, also after a reload.
func TestZipUser(t *testing.T) {
	root := load(t, oneFolder)
	write(t, root+"/img/photos/a.jpg", "x")
	h, _ := zipSite(t)
	now := time.Unix(1_900_000_000, 0)
	h.now = func() time.Time { return now }
	answer := selectZip(t, as("alice", h), media.Image, "photos", "a.jpg")
	address := route(t, answer)
	const expired = "has expired"
	wantError(t, ask(t, as("bob", h), http.MethodGet, address, ""), http.StatusNotFound, expired)
	wantError(t, ask(t, h, http.MethodGet, address, ""), http.StatusNotFound, expired)
	wantError(t, ask(t, as("alice", h), http.MethodGet, "/zip/unknown/photos.zip", ""), http.StatusNotFound, expired)
	wantError(t, ask(t, as("alice", h), http.MethodGet, strings.Replace(address, "photos.zip", "other.zip", 1), ""), http.StatusNotFound, expired)
	next, err := NewEditor(Off, zap.NewNop()) // as in a reload
	if err != nil {
		t.Fatal(err)
	}
	if next.selections != selected {
		t.Error("the handlers of two configurations have different selections")
	}
	next.now, next.selections = h.now, h.selections
	loadAdmin(t, strings.ReplaceAll(oneFolder, "$ROOT", root), `{"disabled": true, "config": {"persist": false}}`)
	now = now.Add(selectionLifetime - 1)
	if w := ask(t, as("alice", next), http.MethodGet, address, ""); w.Code != http.StatusOK || int64(w.Body.Len()) != answer.Size {
		t.Errorf("after a reload: %d, %d bytes", w.Code, w.Body.Len())
	}
	now = now.Add(1)
	wantError(t, ask(t, as("alice", next), http.MethodGet, address, ""), http.StatusNotFound, expired)
	loadAdmin(t, strings.ReplaceAll(strings.ReplaceAll(oneFolder, "photos", "gone"), "$ROOT", root), `{"disabled": true, "config": {"persist": false}}`)
	now = now.Add(-1)
	wantError(t, ask(t, as("alice", next), http.MethodGet, address, ""), http.StatusNotFound, "no alias")
}

// TestZipChanged: the download breaks if an item is no longer the one that was selected. The log has
// the reason.
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
			write(t, folder+"a.jpg", strings.Repeat("x", 100_000))
			write(t, folder+"b.jpg", "bytes")
			h, logs := zipSite(t)
			server := httptest.NewServer(h)
			defer server.Close()
			answer := selectZip(t, h, media.Image, "photos", "a.jpg", "b.jpg")
			if err := c.change(folder + "b.jpg"); err != nil {
				t.Fatal(err)
			}
			got, err := download(t, server.URL+route(t, answer))
			if !errors.Is(err, io.ErrUnexpectedEOF) || int64(len(got)) >= answer.Size {
				t.Errorf("%d bytes, error %v", len(got), err)
			}
			entries := logs.FilterMessage("sending a zip").FilterLevelExact(zap.ErrorLevel).All()
			if len(entries) != 1 || !strings.Contains(fmt.Sprint(entries[0].ContextMap()["error"]), c.text) ||
				!strings.Contains(fmt.Sprint(entries[0].ContextMap()["error"]), "b.jpg") {
				t.Errorf("logged %+v", entries)
			}
		})
	}
}

func download(t *testing.T, address string) ([]byte, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
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
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	answer := selectZip(t, h, media.Image, "photos", "a.jpg")
	if answer.Size < 1<<30 {
		t.Errorf("%+v", answer)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+route(t, answer), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, got.Body, 1<<20); err != nil {
		t.Error(err)
	}
	if all, _ := h.selections.downloads(); all != 1 {
		t.Errorf("%d downloads", all)
	}
	got.Body.Close()
	if reason, _ := (<-ended).(error); !errors.Is(reason, http.ErrAbortHandler) {
		t.Errorf("ended with %v", reason)
	}
	if n := logs.FilterMessage("sending a zip").FilterLevelExact(zap.DebugLevel).Len(); n != 1 || logs.FilterLevelExact(zap.ErrorLevel).Len() > 0 {
		t.Errorf("logged %+v", logs.All())
	}
	if all, users := h.selections.downloads(); all != 0 || users != 0 {
		t.Errorf("left are %d downloads of %d users", all, users)
	}
}

// downloads returns the number of running downloads and of their users.
func (s *selections) downloads() (all, users int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, len(s.running)
}

// TestZipMany: a user, and all users together, have a bounded number of downloads.
func TestZipMany(t *testing.T) {
	root := load(t, oneFolder)
	write(t, root+"/img/photos/a.jpg", "x")
	h, _ := zipSite(t)
	answer := selectZip(t, as("alice", h), media.Image, "photos", "a.jpg")
	var ended func()
	for range maxUserZips {
		ended, _ = h.selections.begin("panel alice")
	}
	w := ask(t, as("alice", h), http.MethodGet, route(t, answer), "")
	wantError(t, w, http.StatusTooManyRequests, "downloaded already")
	if w.Header().Get("Retry-After") == "" || w.Header().Get("Content-Disposition") != "" {
		t.Errorf("%v", w.Header())
	}
	if w := ask(t, as("alice", h), http.MethodHead, route(t, answer), ""); w.Code != http.StatusOK {
		t.Errorf("HEAD: %d", w.Code)
	}
	ended()
	if w := ask(t, as("alice", h), http.MethodGet, route(t, answer), ""); w.Code != http.StatusOK {
		t.Errorf("after one has ended: %d", w.Code)
	}
	for i := range maxZips - maxUserZips + 1 {
		if _, ok := h.selections.begin(fmt.Sprint("panel ", i)); !ok {
			t.Errorf("user %d is refused", i)
		}
	}
	if _, ok := h.selections.begin("panel bob"); ok {
		t.Error("too many downloads of all users")
	}
}

// TestSelections: a further selection replaces the oldest one, of the user or of all, and removes the
// expired ones.
func TestSelections(t *testing.T) {
	t.Parallel()
	s, now := newSelections(), time.Unix(1_900_000_000, 0)
	add := func(user string) string {
		now = now.Add(time.Second)
		return s.add(selection{user: user, selected: now})
	}
	has := func(id, user string) bool {
		_, ok := s.find(id, user, now)
		return ok
	}
	first, other := add("alice"), add("bob")
	for range maxUserSelections - 1 {
		add("alice")
	}
	if !has(first, "alice") || !has(other, "bob") {
		t.Error("replaced too early")
	}
	last := add("alice")
	if has(first, "alice") || !has(other, "bob") || !has(last, "alice") || len(s.byID) != maxUserSelections+1 {
		t.Errorf("%d are kept", len(s.byID))
	}
	for i := range 2 * maxSelections {
		add(fmt.Sprint("user ", i))
	}
	if len(s.byID) != maxSelections || has(other, "bob") {
		t.Errorf("%d are kept", len(s.byID))
	}
	now = now.Add(selectionLifetime)
	if id := add("carol"); len(s.byID) != 1 || !has(id, "carol") || len(id) < 26 {
		t.Errorf("%d are kept after they have expired", len(s.byID))
	}
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
