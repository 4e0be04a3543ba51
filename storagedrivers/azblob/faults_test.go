package azblob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestCutBlock: a block whose connection breaks is sent again.
func TestCutBlock(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	direct := a.first(t).(*driver)
	proxy := faults.New(t, a.address())
	d := a.at(proxy.Address).open(t, direct.name)
	defer d.Close()
	data := test.Random(9 << 20)
	proxy.CutAfter(6 << 20)
	info, err := d.Put(t.Context(), "key", bytes.NewReader(data), create)
	test.Is(t, err, nil)
	test.Equal(t, proxy.Cuts(), 1, "cuts")
	holds(t, direct, "key", data, info)
}

// TestCutWhileReading: a reader continues where it was cut, but never in another object.
func TestCutWhileReading(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	data := test.Random(1 << 20)
	for _, replaced := range []bool{false, true} {
		var reads atomic.Int32
		d, direct := through(t, a, func(w http.ResponseWriter, r *http.Request, service http.Handler) {
			if r.Method != http.MethodGet || reads.Add(1) > 1 {
				service.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			service.ServeHTTP(answer, r)
			maps.Copy(w.Header(), answer.Header())
			_, _ = w.Write(answer.Body.Bytes()[:300<<10])
			panic(http.ErrAbortHandler)
		})
		_, err := d.Put(t.Context(), "key", bytes.NewReader(data), create)
		test.Must(t, err)
		body, _, err := d.Open(t.Context(), "key", storagedrivers.Range{})
		test.Must(t, err)
		if replaced {
			_, err := direct.Put(t.Context(), "key", bytes.NewReader(test.Random(2<<20)), overwrite)
			test.Must(t, err)
		}
		got, err := io.ReadAll(body)
		if replaced && (err == nil || errors.Is(err, io.EOF) || !bytes.HasPrefix(data, got)) {
			t.Errorf("%d bytes of a replaced object, error %v", len(got), err)
		}
		if !replaced && (err != nil || !bytes.Equal(got, data)) {
			t.Errorf("%d bytes, error %v", len(got), err)
		}
		_ = body.Close()
	}
}

// TestRefusedWhileSending: there is no crash or race if the response arrives, and the upload ends,
// while the connection still reads a block.
func TestRefusedWhileSending(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, rand.Int64N(4<<20))
		refuse(w, http.StatusForbidden, "AuthorizationFailure")
	}))
	defer server.Close()
	d := (&account{endpoint: server.URL + "/" + servers.AzuriteAccount}).open(t, "pictures")
	defer d.Close()
	data := test.Random(20 << 20)
	for range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(50*time.Millisecond))
		_, err := d.Put(ctx, "key", bytes.NewReader(data), overwrite)
		cancel()
		if err == nil {
			t.Error("stored, but refused")
		}
	}
}
