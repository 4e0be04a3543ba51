package drivertest

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"testing"
)

func testOpenSeeker(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	info := e.put(t, "object", c, create)
	e.put(t, "empty", content{2, 0}, create)
	o, err := e.storage.OpenSeeker(t.Context(), "object")
	if err != nil {
		t.Fatal(err)
	}
	sameInfo(t, "opening to seek", o.Info, info)
	head := make([]byte, 100)
	_, err = io.ReadFull(o, head)
	succeeds(t, err, "reading")
	for _, tt := range []struct {
		offset int64
		whence int
		want   int64
	}{
		{0, io.SeekCurrent, 100},
		{1000, io.SeekCurrent, 1100},
		{-1000, io.SeekEnd, c.size - 1000},
		{0, io.SeekEnd, c.size},
		{10, io.SeekEnd, c.size + 10},
		{0, io.SeekStart, 0},
		{5 * mib, io.SeekStart, 5 * mib},
	} {
		at, err := o.Seek(tt.offset, tt.whence)
		if err != nil || at != tt.want {
			t.Errorf("seeking %d from %d: at %d, want %d, error %v", tt.offset, tt.whence, at, tt.want, err)
		}
		n := min(1000, max(0, c.size-at))
		succeeds(t, equal(io.LimitReader(o, 1000), c.part(at, n)), "reading after seeking")
		_, err = o.Seek(at, io.SeekStart)
		succeeds(t, err, "seeking back")
		if tt.whence == io.SeekStart && tt.offset == 0 {
			_, err = o.Seek(100, io.SeekStart)
			succeeds(t, err, "seeking back")
		}
	}
	if _, err := o.Seek(-1, io.SeekStart); err == nil {
		t.Error("seeking before the start succeeded")
	}
	succeeds(t, equal(o, c.part(5*mib, 4*mib)), "reading after a refused seek")
	closed(t, o)
	if _, err := o.Read(head); err == nil {
		t.Error("reading succeeded after closing")
	}

	empty, err := e.storage.OpenSeeker(t.Context(), "empty")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := empty.Read(head); n != 0 || err != io.EOF { //nolint:errorlint // readers return it bare
		t.Errorf("reading nothing: %d bytes, error %v", n, err)
	}
	closed(t, empty)
	_, err = e.storage.OpenSeeker(t.Context(), "missing")
	fails(t, err, fs.ErrNotExist, "opening a missing object to seek")
}

// testOpenSeekerOfReplaced: reading returns the old bytes or an error, never those of another
// generation.
func testOpenSeekerOfReplaced(t *testing.T, e *env) {
	old := content{1, 300 * kib}
	e.put(t, "object", old, create)
	o, err := e.storage.OpenSeeker(t.Context(), "object")
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, o)
	_, err = io.ReadFull(o, make([]byte, 100))
	succeeds(t, err, "reading")
	e.put(t, "object", content{2, 400 * kib}, overwrite)
	_, err = o.Seek(1000, io.SeekStart)
	succeeds(t, err, "seeking")
	for range 2 {
		b, err := io.ReadAll(o)
		if err != nil {
			if len(b) > 0 {
				t.Errorf("%d bytes before the error %v", len(b), err)
			}
			continue
		}
		succeeds(t, equal(bytes.NewReader(b), old.part(1000, old.size-1000)), "reading a replaced object")
		break
	}
}

func testServeContent(t *testing.T, e *env) {
	c := content{1, 300 * kib}
	info := e.put(t, "picture.png", c, create)
	for _, tt := range []struct {
		name, header, value string
		status              int
		offset, length      int64
	}{
		{"all", "Accept", "*/*", http.StatusOK, 0, c.size},
		{"range", "Range", "bytes=1000-1999", http.StatusPartialContent, 1000, 1000},
		{"end", "Range", "bytes=-10", http.StatusPartialContent, c.size - 10, 10},
		{"past the end", "Range", "bytes=307200-", http.StatusRequestedRangeNotSatisfiable, 0, -1},
		{"etag", "If-None-Match", info.ETag, http.StatusNotModified, 0, 0},
	} {
		if tt.value == "" {
			continue // no etag
		}
		o, err := e.storage.OpenSeeker(t.Context(), "picture.png")
		if err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/picture.png", nil)
		request.Header.Set(tt.header, tt.value)
		answer := httptest.NewRecorder()
		answer.Header().Set("Content-Type", o.Info.ContentType)
		if o.Info.ETag != "" {
			answer.Header().Set("ETag", o.Info.ETag)
		}
		http.ServeContent(answer, request, "", o.Info.ModTime, o)
		if answer.Code != tt.status {
			t.Errorf("%s: status %d, want %d", tt.name, answer.Code, tt.status)
		}
		if tt.length >= 0 {
			succeeds(t, equal(answer.Body, c.part(tt.offset, tt.length)), tt.name)
		}
		closed(t, o)
	}
}
