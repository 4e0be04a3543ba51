package drivertest

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

func testRange(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	e.put(t, "empty", content{2, 0}, create)
	for _, tt := range []struct {
		offset, length, want int64
	}{
		{0, 0, c.size},
		{0, 1, 1},
		{1000, 5000, 5000},
		{8*mib - 1, 2, 2},
		{5 * mib, 0, 4 * mib},
		{c.size - 1, 0, 1},
		{c.size - 1, 1, 1},
		{c.size - 10, 100, 10},
		{0, c.size, c.size},
		{0, c.size + 1, c.size},
		{1, 1 << 62, c.size - 1},
	} {
		rng := storagedrivers.Range{Offset: tt.offset, Length: tt.length}
		body, info, err := e.storage.Open(t.Context(), "object", rng)
		if err != nil {
			t.Errorf("opening %+v: %v", rng, err)
			continue
		}
		if info.Size != c.size {
			t.Errorf("opening %+v: info of %d bytes, want the whole object's %d", rng, info.Size, c.size)
		}
		succeeds(t, equal(body, c.part(tt.offset, tt.want)), fmt.Sprintf("reading %+v", rng))
		closed(t, body)
	}
	refused := func(key string, offset, length int64) {
		body, _, err := e.storage.Open(t.Context(), key, storagedrivers.Range{Offset: offset, Length: length})
		if err == nil {
			closed(t, body)
		}
		what := fmt.Sprintf("opening %d bytes from %d of %s", length, offset, key)
		fails(t, err, storagedrivers.ErrInvalidRange, what)
		never(t, err, what, fs.ErrNotExist, storagedrivers.ErrUnavailable)
	}
	refused("object", c.size, 0)
	refused("object", c.size, 1)
	refused("object", c.size+1000, 0)
	refused("object", 1<<62, 10)
	refused("object", -1, 0)
	refused("object", 0, -1)
	refused("empty", 0, 1)
	refused("empty", 1, 0)
	e.has(t, "empty", content{2, 0})
	_, _, err := e.storage.Open(t.Context(), "missing", storagedrivers.Range{Offset: 10})
	fails(t, err, fs.ErrNotExist, "a range of a missing object")
}

func testStat(t *testing.T, e *env) {
	const precision = 2 * time.Minute // precision of the backend, and error of its clock
	for key, contentType := range map[string]string{
		"a/picture.PNG": "image/png",
		"text.txt":      "text/plain; charset=utf-8",
		"no extension":  "application/octet-stream",
	} {
		before := time.Now() //nolint:forbidigo // compared with the backend's clock
		want := e.put(t, key, content{1, 12345}, create)
		got, err := e.storage.Stat(t.Context(), key)
		if err != nil {
			t.Fatalf("stat: %v", err)
		}
		if got.Key != key || got.Size != 12345 || got.ContentType != contentType {
			t.Errorf("stat of %q: %+v, want 12345 bytes of %s", key, got, contentType)
		}
		if age := got.ModTime.Sub(before); age < -precision || age > precision {
			t.Errorf("stat of %q: stored at %v, want about %v", key, got.ModTime, before)
		}
		sameInfo(t, "put", want, got)
		body, opened, err := e.storage.Open(t.Context(), key, storagedrivers.Range{Offset: 5, Length: 5})
		if err != nil {
			t.Fatalf("opening: %v", err)
		}
		closed(t, body)
		sameInfo(t, "open", opened, got)
		page, err := e.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: key})
		if err != nil || len(page.Objects) != 1 {
			t.Fatalf("listing %q: %d objects, error %v", key, len(page.Objects), err)
		}
		listed := page.Objects[0]
		if age := listed.ModTime.Sub(before); age < -precision || age > precision {
			t.Errorf("listing of %q: stored at %v, want about %v", key, listed.ModTime, before)
		}
		if !e.storage.Features().ListTimes {
			listed.ModTime = got.ModTime
		}
		sameInfo(t, "list", listed, got)
	}
}

// sameInfo asserts that a method describes an object as Stat does.
func sameInfo(t *testing.T, method string, got, stat storagedrivers.Info) {
	t.Helper()
	if !got.ModTime.Equal(stat.ModTime) {
		t.Errorf("%s: stored at %v, want as stat %v", method, got.ModTime, stat.ModTime)
	}
	got.ModTime = stat.ModTime
	if got != stat {
		t.Errorf("%s: got %+v, stat %+v", method, got, stat)
	}
}

func testETag(t *testing.T, e *env) {
	seen := map[string]bool{}
	for seed := range uint64(5) {
		info := e.put(t, "object", content{seed, 1000}, overwrite)
		none := info.ETag == "" // then no generation has one
		if seed > 0 && none != seen[""] {
			t.Errorf("etag %q after those of %v", info.ETag, seen)
		}
		if !none && (len(info.ETag) < 3 || !strings.HasPrefix(info.ETag, `"`) || !strings.HasSuffix(info.ETag, `"`)) {
			t.Errorf("etag %q is not a strong one in quotes", info.ETag)
		}
		if !none && seen[info.ETag] {
			t.Errorf("etag %q was another generation's", info.ETag)
		}
		seen[info.ETag] = true
		got, err := e.storage.Stat(t.Context(), "object")
		if err != nil || got.ETag != info.ETag {
			t.Errorf("stat: got etag %q after %q was stored, error %v", got.ETag, info.ETag, err)
		}
	}
}

func testSeekingReaders(t *testing.T, e *env) {
	if !e.driver.Features().Seek {
		return // nothing is promised
	}
	c := content{1, 300 * kib}
	e.put(t, "object", c, create)
	e.put(t, "empty", content{2, 0}, create)
	body, _, err := e.driver.Open(t.Context(), "object", all)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, body)
	seeker, ok := body.(io.ReadSeeker)
	if !ok {
		t.Fatalf("%T has no io.Seeker", body)
	}
	at, ok := body.(io.ReaderAt)
	if !ok {
		t.Fatalf("%T has no io.ReaderAt", body)
	}
	succeeds(t, equal(io.NewSectionReader(at, 1000, 2000), c.part(1000, 2000)), "reading at 1000")
	succeeds(t, equal(seeker, c.reader()), "reading after reading at")
	offset, err := seeker.Seek(-1000, io.SeekEnd)
	if err != nil || offset != c.size-1000 {
		t.Errorf("seeking from the end: at %d, error %v", offset, err)
	}
	succeeds(t, equal(seeker, c.part(c.size-1000, 1000)), "reading the end")
	_, err = seeker.Seek(5, io.SeekStart)
	succeeds(t, err, "seeking back")
	succeeds(t, equal(seeker, c.part(5, c.size-5)), "reading again")

	empty, _, err := e.driver.Open(t.Context(), "empty", all)
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, empty)
	if _, ok := empty.(io.Seeker); !ok {
		t.Errorf("%T of an empty object has no io.Seeker", empty)
	}
}

// testSlowReaders: readers of one owner that read no further keep no other owner from reading and
// storing.
func testSlowReaders(t *testing.T, e *env) {
	const readers = 12
	c := content{1, 4 * mib}
	e.put(t, "large", c, create)
	slow, leave := context.WithCancel(storagedrivers.WithOwner(t.Context(), "slow"))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer leave()
	opened := make(chan error, readers)
	for range readers {
		wg.Go(func() {
			body, _, err := e.storage.Open(slow, "large", all)
			if err != nil {
				opened <- err
				return
			}
			defer body.Close()
			_, err = body.Read(make([]byte, 1))
			opened <- err
			<-slow.Done()
		})
	}
	succeeds(t, <-opened, "opening as a slow reader")
	other := storagedrivers.WithOwner(t.Context(), "other")
	body, _, err := e.storage.Open(other, "large", all)
	if err != nil {
		t.Fatalf("opening beside slow readers of another owner: %v", err)
	}
	succeeds(t, equal(body, c.reader()), "reading beside slow readers of another owner")
	closed(t, body)
	_, err = e.storage.Put(other, "small", newSource(content{2, 100}), create)
	succeeds(t, err, "storing beside slow readers of another owner")
}
