package tus_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestRefusedAtCreation: what can be refused without bytes is refused at the creation, with
// the status and the JSON of a form.
func TestRefusedAtCreation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, pairs string
		status            int
		has, file         string
	}{
		{"extension", resumablePath, metadata("filename", "a.exe"), 415, "", "a.exe"},
		{"extension of the other kind", imagesPath, metadata("filename", "a.txt"), 415, "", "a.txt"},
		{"folder instead of a name", resumablePath, metadata("filename", "a.txt/"), 400, "no filename", ""},
		{"control character", resumablePath, metadata("filename", "a\x00.txt", "alias", "exact"), 400, "", "a\x00.txt"},
		{"line break", resumablePath, metadata("filename", "a\r\nX: y.txt", "alias", "exact"), 400, "", "a\r\nX: y.txt"},
		{"no UTF-8", resumablePath, metadata("filename", "a.txt", "sub_folder", "a\xff"), 400, "", ""},
		{"extension behind an encoding", resumablePath, metadata("filename", "=?utf-8?B?YS5waHAudHh0?="), 415, "php", "a.php.txt"},
		{"unknown alias", resumablePath, metadata("filename", "a.txt", "alias", "none"), 400, "none", ""},
		{"long alias", resumablePath, metadata("filename", "a.txt", "alias", strings.Repeat("a", 4000)), 400, "", ""},
		{"size", resumablePath, metadata("filename", "a.txt", "alias", "small"), 413, "10", "a.txt"},
		{"rights", resumablePath + "#", metadata("filename", "a.txt", "alias", "one"), 403, "one", ""},
		{"name that is not sanitised away", resumablePath, metadata("name", ".txt"), 415, "", ".txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := aSite(t)
			header := "Authorization: Bearer $TOKEN\n"
			path, other := strings.CutSuffix(c.path, "#")
			if other {
				header = "Authorization: Bearer $OTHER\n"
			}
			r := s.roundTrip(t, s.Request(t, http.MethodPost, path, header+"Tus-Resumable: 1.0.0\nUpload-Length: 100\n"+c.pairs, ""))
			if r.Status != c.status {
				t.Fatalf("status %d, want %d: %s", r.Status, c.status, r.Body)
			}
			names := []string{c.file}
			if c.file == "" {
				names = nil
			}
			r.Refused(t, c.status, c.has, names...)
			if r.Header.Get(location) != "" {
				t.Error("it has a location")
			}
		})
	}
}

// TestMetadata checks what the metadata says about the item.
func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, pairs, key, filename string }{
		{"filename", metadata("filename", "A b.TXT"), "file/content/a-b.txt", "a-b.txt"},
		{"name", metadata("name", "a.txt"), "file/content/a.txt", "a.txt"},
		{"filename and name", metadata("name", "b.php", "filename", "a.txt"), "file/content/a.txt", "a.txt"},
		{"empty filename and name", metadata("filename", "", "name", "b.txt"), "file/content/b.txt", "b.txt"},
		{"other keys", metadata("filename", "a.txt", "type", "text/plain", "filetype", "x", "relativePath", "null"), "file/content/a.txt", "a.txt"},
		{"other key of bytes", metadata("filename", "a.txt", "x", "\x00\xff\r\n"), "file/content/a.txt", "a.txt"},
		{"empty alias", metadata("filename", "a.txt", "alias", "", "sub_folder", ""), "file/content/a.txt", "a.txt"},
		{"alias", metadata("filename", "a.txt", "alias", "one"), "file/one/a.txt", "a.txt"},
		{"sub folder", metadata("filename", "a.txt", "sub_folder", "B c/d"), "file/content/b-c/d/a.txt", "b-c/d/a.txt"},
		{"folder of the day", metadata("filename", "a.txt", "alias", "dated"), "file/dated/" + uploadDay + "/a.txt", uploadDay + "/a.txt"},
		{"beyond ASCII", metadata("filename", "Näme 100%.txt", "alias", "exact"), "file/exact/Näme 100%.txt", "N%C3%A4me 100%25.txt"},
		{"a base of an address", metadata("filename", "a.txt", "alias", "cdn"), "file/cdn/a.txt", "a.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := aSite(t)
			address := s.create(t, 4, c.pairs)
			got := s.patch(t, address, 0, "text", "").Want(t, 204, "Media-Filename: "+c.filename+"\nMedia-WebP")
			if stored, ok := s.Stored(t, c.key); !ok || stored != "text" {
				t.Errorf("%s is %q, %t", c.key, stored, ok)
			}
			path := got.Header.Get("Media-Full-Path")
			s.offset(t, address, 4).Want(t, 200, "Media-Filename: "+c.filename+"\nMedia-Full-Path: "+path+"\nUpload-Length: 4")
			s.send(t, http.MethodGet, address, "", "").Want(t, 200, "")
			if c.name == "a base of an address" && path != "https://cdn.example/x/static/file/cdn/a.txt" {
				t.Errorf("path %s", path)
			}
		})
	}
}

// TestImage: the answers have the variant of an image, and its size.
func TestImage(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	picture := pngOf(4, 3)
	address := s.send(t, http.MethodPost, imagesPath, fmt.Sprintf("Upload-Length: %d\n%s%s",
		len(picture), tusBody, metadata("filename", "a.png", "alias", "pictures")), picture[:10]).Want(t, 201, "Upload-Offset: 10").Header.Get(location)
	path := origin + "/static/img/pictures/a.png"
	headers := "Media-Filename: a.png\nMedia-Full-Path: " + path + "\nMedia-WebP: " + path + ".webp\n"
	s.patch(t, address, 10, picture[10:], "").Want(t, 204, headers)
	s.offset(t, address, len(picture)).Want(t, 200, headers)
	got := s.roundTrip(t, s.Request(t, http.MethodGet, address, bearer, "")).Want(t, 200, "") // without Tus-Resumable
	if items := got.Items(t); len(items) != 1 || items[0] != (testservice.Item{FullPath: path, Filename: "a.png", WebP: path + ".webp"}) {
		t.Errorf("items %+v", items)
	}
}

// TestRefusedAtEnd: a refused item is answered like that of a form, and its upload is gone.
func TestRefusedAtEnd(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.send(t, http.MethodPost, imagesPath, "Upload-Length: 4\n"+metadata("filename", "a.png"), "").Header.Get(location)
	got := s.patch(t, address, 0, "text", "").Want(t, 415, "Media-Filename\nUpload-Offset")
	got.Refused(t, 415, "", "a.png")
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch} {
		got := s.send(t, method, address, tusBody+"Upload-Offset: 4\n", "").Want(t, 410, "Upload-Offset\nMedia-Filename")
		got.Refused(t, 410, "")
	}
	for key, value := range s.Objects(t) {
		if len(value) > 4<<10 || strings.HasPrefix(key, "img/") {
			t.Errorf("%s is left, %d bytes", key, len(value))
		}
	}
	s.send(t, http.MethodDelete, address, "", "").Want(t, 204, "")
	if left := s.Objects(t); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	s.send(t, http.MethodPost, imagesPath, "Upload-Length: 4\n"+tusBody+metadata("filename", "a.png"), "text").Refused(t, 415, "", "a.png")
}

// TestState checks the JSON of an unfinished upload.
func TestState(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	at := noon.Add(24 * time.Hour).Unix()
	for header, want := range map[string]string{
		"Upload-Length: 5\n":                             fmt.Sprintf(`{"success":true,"offset":0,"length":5,"expires_at":%d}`, at),
		"Upload-Defer-Length: 1\n":                       fmt.Sprintf(`{"success":true,"offset":0,"length":null,"expires_at":%d}`, at),
		"Upload-Concat: partial\nUpload-Length: 0\n":     fmt.Sprintf(`{"success":true,"offset":0,"length":0,"expires_at":%d}`, at),
		"X-HTTP-Method-Override: POST\nUpload-Length: 9": fmt.Sprintf(`{"success":true,"offset":0,"length":9,"expires_at":%d}`, at),
	} {
		address := s.send(t, http.MethodPost, resumablePath, aText+header, "").Header.Get(location)
		got := s.send(t, http.MethodPatch, address, "X-HTTP-Method-Override: GET\n", "").Want(t, 200, "")
		if strings.TrimSpace(got.Body) != want {
			t.Errorf("%q: %s, want %s", header, got.Body, want)
		}
	}
}

// TestOthers: an upload is found only by its account, under its kind.
func TestOthers(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.create(t, 5, aText)
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete} {
		header := "Tus-Resumable: 1.0.0\nUpload-Offset: 0\n" + tusBody
		for credentials, want := range map[string]int{"": 401, "Authorization: Bearer x\n": 401, "Authorization: Bearer $OTHER\n": 404} {
			s.roundTrip(t, s.Request(t, method, address, header+credentials, "hello")).Want(t, want, "Upload-Offset")
		}
		s.send(t, method, strings.Replace(address, "/file/", "/image/", 1), "Upload-Offset: 0\n"+tusBody, "hello").Want(t, 404, "Upload-Offset")
	}
	s.roundTrip(t, s.Request(t, http.MethodPost, resumablePath, "Tus-Resumable: 1.0.0\nAuthorization: Bearer $OTHER\nUpload-Concat: final;"+address+"\n"+
		metadata("filename", "a.txt", "alias", "two"), "")).Want(t, 400, location)
	s.offset(t, address, 0)
	header := s.Replaced(t, tusHeader) + "Upload-Offset: 0\n" + tusBody
	s.Store.Fails.Store(true)
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete} {
		s.roundTrip(t, s.Request(t, method, address, header, "hello")).Want(t, unavailable(method), "Retry-After: 1\nUpload-Offset")
	}
	s.roundTrip(t, s.Request(t, http.MethodPost, resumablePath, header+"\nUpload-Length: 5\n"+aText, "hello")).Want(t, 503, "Retry-After: 1\nLocation")
	s.Store.Fails.Store(false)
	s.offset(t, address, 0)
	s.patch(t, address, 0, "hello", "").Want(t, 204, "Media-Filename: a.txt")
}

// largeHeaders returns headers of a creation that are far too large.
func largeHeaders() map[string]http.Header {
	const large = 900 << 10 // net/http accepts 1 MiB
	keys := func(format string) string {
		var b strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	many := make([]string, 40_000)
	for i := range many {
		many[i] = "a" + strconv.Itoa(i)
	}
	return map[string]http.Header{
		"100,000 keys":              {"Upload-Metadata": {keys("%d,") + "filename YS50eHQ="}},
		"100,000 keys and values":   {"Upload-Metadata": {keys("k%d YQ==,") + "filename YS50eHQ="}},
		"a value of 1 MiB":          {"Upload-Metadata": {"filename YS50eHQ=,a " + strings.Repeat("QUFB", 1<<18)}},
		"a value of 900 KiB":        {"Upload-Metadata": {"filename YS50eHQ=,a " + strings.Repeat("QUFB", large/4)}},
		"a value that is no Base64": {"Upload-Metadata": {"filename YS50eHQ=,a " + strings.Repeat("*", large)}},
		"a key of 900 KiB":          {"Upload-Metadata": {"filename YS50eHQ=," + strings.Repeat("k", large)}},
		"40,000 times":              {"Upload-Metadata": many},
		"parts":                     {"Upload-Concat": {"final;" + strings.Repeat("/a ", large/3)}},
		"length":                    {"Upload-Length": {strings.Repeat("1", large)}},
		"checksum":                  {"Upload-Checksum": {"sha1 " + strings.Repeat("QUFB", large/4)}},
	}
}

// TestHeaderMemory: a creation with large headers is refused before they are decoded, and leaves
// nothing.
func TestHeaderMemory(t *testing.T) { // not parallel: it measures the process
	s := aSite(t)
	for name, header := range largeHeaders() {
		r := s.Request(t, http.MethodPost, resumablePath, tusHeader+"Upload-Length: 1\n", "")
		maps.Copy(r.Header, header)
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.Handler.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 || w.Code != 400 && w.Code != 413 {
			t.Errorf("%s: %d, %d bytes of memory", name, w.Code, took)
		}
	}
	if left := s.Objects(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestKeys: keys of the metadata may have any characters that a header may have. They are
// returned as they came.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, "%d,", i)
	}
	for key, status := range map[string]int{
		`"`: 201, "a:b;c=d": 201, "<script>": 201, "{env.HOME}": 201, "%00": 201, `\n`: 201, "__proto__": 201, "ä": 201, "Filename": 201, "filename\u200b": 201,
		strings.Repeat("k", 8000): 201, all.String() + "x": 201,
		"a\x00": 400, "a\x7f": 400, "\xff": 400, "a\r": 400, "\u0085": 400, "filename": 400, strings.Repeat("k", 8<<10): 400,
	} {
		r := s.Request(t, http.MethodPost, resumablePath, tusHeader+"Upload-Length: 1\n", "")
		value := "filename YS50eHQ=," + key
		r.Header.Set("Upload-Metadata", value)
		got := s.roundTrip(t, r).Want(t, status, "")
		if status != http.StatusCreated {
			continue
		}
		if echo := s.offset(t, got.Header.Get(location), 0).Header.Get("Upload-Metadata"); echo != value {
			t.Errorf("%.100q came back as %.100q", value, echo)
		}
	}
}

// TestMaxUploads: a request that adds bytes counts as an upload of its account until it ends.
func TestMaxUploads(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, memory.New(), media.Limits{MaxUploads: 1}, nil)
	first, second := s.create(t, len(digits), aText), s.create(t, len(digits), aText)
	s.patchWith(t, first, "", func() {
		s.patch(t, second, 0, digits, "").Want(t, 503, "Retry-After: 1\nUpload-Offset")
	}).Want(t, 204, "")
	s.patch(t, second, 0, digits, "").Want(t, 204, "")
}

// TestLongerThanRest: a request with more bytes than the rest of its upload is refused before they
// are received.
func TestLongerThanRest(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.create(t, len(digits), aText)
	s.patch(t, address, 0, digits[:5], "").Want(t, 204, "")
	r := s.Request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 5\n", "")
	r.ContentLength, r.Body = 6, io.NopCloser(strings.NewReader(digits[5:6])) // the others are not sent
	s.roundTrip(t, r).Want(t, 413, "")
	s.offset(t, address, 5)
}
