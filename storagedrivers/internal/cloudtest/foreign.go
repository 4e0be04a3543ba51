package cloudtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// Foreign describes a service whose driver reaches another server.
type Foreign struct {
	// Open returns a driver of the service at endpoint.
	Open func(t *testing.T, endpoint string) storagedrivers.Driver
	// Listing is a genuine reply to a request for a listing, of the object "key".
	Listing string
	// Wrong are listings that the service never sends.
	Wrong []string
	// Header has what all successful replies of the service have.
	Header http.Header
	// Part is the size of a large object.
	Part int
	// Cause is that of each error.
	Cause storagedrivers.Cause
}

// reply is that of the other server to each request.
type reply struct {
	status int
	header http.Header
	body   string
	cut    bool // the connection breaks before the end of the body
}

func (r *reply) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	maps.Copy(w.Header(), r.header)
	if r.cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(r.body)+1))
	}
	w.WriteHeader(r.status)
	if request.Method != http.MethodHead {
		_, _ = io.WriteString(w, r.body)
	}
}

// pages are what web servers answer, and services of other kinds.
var pages = []string{
	"", "<!DOCTYPE html><html><body>Log in</body></html>", " ", "<", "<html>Log in<br></html>", "{}", "[]", "null",
	`{"kind":"other#thing"}`, `{"items":[]}`, "OK", "\x00\xff", `<?xml version="1.0"?>`, "<Other/>", "<Other></Other>",
	"<ListBucketResult/>", "<EnumerationResults/>", "<ListBucketResult></ListBucketResult>",
	"<EnumerationResults></EnumerationResults>",
}

// AnotherServer tests that no reply of another server is believed: each operation is an error
// with a cause.
func AnotherServer(t *testing.T, f Foreign) {
	t.Parallel()
	var now reply
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	d := f.Open(t, server.URL)
	asked := 0
	fails := func(err error, op string) {
		t.Helper()
		asked++
		test.Fails(t, err, op, fmt.Sprintf("%+v", now))
		if !now.cut {
			drivertest.Cause(t, err, f.Cause)
		}
	}
	listings := func() {
		t.Helper()
		ctx := t.Context()
		fails(d.Check(ctx), "checking")
		for _, shallow := range []bool{false, true} {
			_, err := d.List(ctx, storagedrivers.ListOptions{Shallow: shallow})
			fails(err, "listing")
		}
	}
	for _, kind := range []string{"", "text/html; charset=utf-8", "application/xml", "application/json"} {
		for _, page := range pages {
			for _, status := range []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusPartialContent} {
				now = reply{status: status, header: http.Header{"Content-Type": {kind}}, body: page}
				listings()
				reads(t.Context(), d, fails)
			}
		}
	}
	for _, page := range pages[:2] {
		now = reply{status: http.StatusOK, header: http.Header{"Content-Type": {"text/html"}}, body: page}
		writes(t.Context(), d, f.Part, fails)
	}
	now = reply{status: http.StatusOK, header: f.Header, body: f.Listing}
	found, err := d.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(found.Objects) != 1 || found.Objects[0].Key != "key" {
		t.Errorf("the service itself lists %+v, error %v", found, err)
	}
	for _, now.body = range append(f.Wrong, pages...) {
		listings()
	}
	for _, now.cut = range []bool{false, true} {
		for end := range f.Listing {
			now.body = f.Listing[:end]
			listings()
		}
	}
	t.Log(asked, "operations")
}

// reads tests the operations on an object that store nothing.
func reads(ctx context.Context, d storagedrivers.Driver, fails func(err error, op string)) {
	_, err := d.Stat(ctx, "key")
	fails(err, "stat")
	_, _, err = d.Open(ctx, "key", storagedrivers.Range{})
	fails(err, "opening")
	_, _, err = d.Open(ctx, "key", storagedrivers.Range{Offset: 1, Length: 2})
	fails(err, "opening a part")
	fails(d.Delete(ctx, "key", storagedrivers.DeleteOptions{}), "deleting")
	fails(d.Delete(ctx, "key", storagedrivers.DeleteOptions{IfMatch: `"1"`}), "deleting the same")
}

// writes tests storing objects, and copying them within the service.
func writes(ctx context.Context, d storagedrivers.Driver, part int, fails func(err error, op string)) {
	for _, opts := range []storagedrivers.PutOptions{
		create, overwrite, {Mode: storagedrivers.Overwrite, IfMatch: `"1"`},
	} {
		for _, size := range []int{0, 100, part + 1} {
			_, err := d.Put(ctx, "key", bytes.NewReader(test.Random(size)), opts)
			fails(err, "storing")
		}
		opts.Source = &storagedrivers.Info{Key: "source", Size: 10, ETag: `"1"`}
		_, err := d.Put(ctx, "key", nil, opts)
		fails(err, "copying")
	}
}
