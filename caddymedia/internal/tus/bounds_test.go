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
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

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
	s := backends["memory"].site(t, nil)
	for name, header := range largeHeaders() {
		r := s.request(t, http.MethodPost, resumablePath, tusHeader+"Upload-Length: 1\n", "")
		maps.Copy(r.Header, header)
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.handler.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 || w.Code != 400 && w.Code != 413 {
			t.Errorf("%s: %d, %d bytes of memory", name, w.Code, took)
		}
	}
	if left := s.objects(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestKeys: keys of the metadata may have any characters that a header may have. They are
// returned as they came.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := backends["memory"].site(t, nil)
	var all strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&all, "%d,", i)
	}
	for key, status := range map[string]int{
		`"`: 201, "a:b;c=d": 201, "<script>": 201, "{env.HOME}": 201, "%00": 201, `\n`: 201, "__proto__": 201, "ä": 201, "Filename": 201, "filename\u200b": 201,
		strings.Repeat("k", 8000): 201, all.String() + "x": 201,
		"a\x00": 400, "a\x7f": 400, "\xff": 400, "a\r": 400, "\u0085": 400, "filename": 400, strings.Repeat("k", 8<<10): 400,
	} {
		r := s.request(t, http.MethodPost, resumablePath, tusHeader+"Upload-Length: 1\n", "")
		value := "filename YS50eHQ=," + key
		r.Header.Set("Upload-Metadata", value)
		got := s.roundTrip(t, r).want(t, status, "")
		if status != http.StatusCreated {
			continue
		}
		if echo := s.offset(t, got.header.Get(location), 0).header.Get("Upload-Metadata"); echo != value {
			t.Errorf("%.100q came back as %.100q", value, echo)
		}
	}
}

// TestMaxOpenAtOnce: however many uploads an account creates with several clients at once, it has
// max_open and one for each client at most.
func TestMaxOpenAtOnce(t *testing.T) {
	t.Parallel()
	const clients, creations, maxOpen = 20, 300, 100 // 100,000 creations have the same end
	onEach(t, "20 clients", func(t *testing.T, b backend) {
		s := b.site(t, nil)
		token := "Authorization: Bearer " + s.token(t, someKey) + "\nTus-Resumable: 1.0.0\n"
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for client := range clients {
			all.Go(func() {
				for i := range creations / clients {
					header := []string{aText, "Upload-Concat: partial\n"}[(client+i)%2]
					r := s.request(t, http.MethodPost, resumablePath, token+"Upload-Length: 1\n"+header, "")
					w := httptest.NewRecorder()
					s.handler.ServeHTTP(w, r)
					if w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") == "" {
						t.Error("no Retry-After")
					}
					mu.Lock()
					statuses[w.Code]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		created, left := statuses[201], len(s.objects(t))
		if created < maxOpen || created > maxOpen+clients || created+statuses[429] != creations || left != created {
			t.Errorf("statuses %v, %d objects", statuses, left)
		}
	})
}

// TestMaxOpenFinal: final uploads that cannot be stored now are bounded too.
func TestMaxOpenFinal(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	driver.Fail = func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, "file/") {
			return storagedrivers.ErrNoSpace
		}
		return nil
	}
	s := newSiteOn(t, driver, media.Limits{}, func(c *media.Config) { c.Resumable.MaxOpen = 3 })
	part := s.part(t, "text")
	statuses := map[int]int{}
	for i := range 20 {
		statuses[s.final(t, metadata("filename", fmt.Sprintf("%d.txt", i)), part).status]++
	}
	if statuses[507] != 3 || statuses[429] != 17 {
		t.Errorf("statuses %v", statuses)
	}
}

// TestMaxUploads: a request that adds bytes counts as an upload of its account until it ends.
func TestMaxUploads(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{MaxUploads: 1}, nil)
	first, second := s.create(t, len(digits), aText), s.create(t, len(digits), aText)
	s.patchWith(t, first, "", func() {
		s.patch(t, second, 0, digits, "").want(t, 503, "Retry-After: 1\nUpload-Offset")
	}).want(t, 204, "")
	s.patch(t, second, 0, digits, "").want(t, 204, "")
}

// TestLongerThanRest: a request with more bytes than the rest of its upload is refused before they
// are received.
func TestLongerThanRest(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	address := s.create(t, len(digits), aText)
	s.patch(t, address, 0, digits[:5], "").want(t, 204, "")
	r := s.request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 5\n", "")
	r.ContentLength, r.Body = 6, io.NopCloser(strings.NewReader(digits[5:6])) // the others are not sent
	s.roundTrip(t, r).want(t, 413, "")
	s.offset(t, address, 5)
}
