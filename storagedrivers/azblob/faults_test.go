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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestDeadHost: every method fails soon, and works again when the host is back.
func TestDeadHost(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const timeout = 5 * time.Second
	a := &account{endpoint: startFake(t)}
	host, path, _ := strings.Cut(strings.TrimPrefix(a.endpoint, "http://"), "/")
	direct := a.first(t).(*driver)
	proxy := faults.New(t, host)
	c := a.config(direct.name)
	c.Endpoint, c.Timeout = "http://"+proxy.Address+"/"+path, options.Duration(timeout)
	d, err := newDriver(c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data := random(5 << 20)
	if _, err := direct.Put(t.Context(), "old", bytes.NewReader(data), create); err != nil {
		t.Fatal(err)
	}
	operations := map[string]func() error{
		"check": func() error { return d.Check(t.Context()) },
		"stat": func() error {
			_, err := d.Stat(t.Context(), "old")
			return err
		},
		"open": func() error {
			_, _, err := d.Open(t.Context(), "old", storagedrivers.Range{})
			return err
		},
		"delete": func() error { return d.Delete(t.Context(), "old", storagedrivers.DeleteOptions{}) },
		"small put": func() error {
			_, err := d.Put(t.Context(), "new", bytes.NewReader(data[:100]), create)
			return err
		},
		"large put": func() error {
			_, err := d.Put(t.Context(), "old", bytes.NewReader(data), overwrite)
			return err
		},
	}
	for name, dead := range map[string]func(bool){"refusing": proxy.SetRefusing, "silent": proxy.SetSilent} {
		for operation, run := range operations {
			dead(true)
			start := time.Now()
			if err := run(); !errors.Is(err, storagedrivers.ErrUnavailable) {
				t.Errorf("%s while %s: error %v, want unavailable", operation, name, err)
			}
			if took := time.Since(start); took > 3*timeout {
				t.Errorf("%s while %s: took %v", operation, name, took)
			}
			proxy.CloseAll() // or data under way arrives late
			dead(false)
		}
		missing(t, direct, "new")
		info, err := d.Stat(t.Context(), "old")
		if err != nil {
			t.Fatalf("after it was %s: %v", name, err)
		}
		holds(t, d, "old", data, info)
	}
}

func TestRefusedPort(t *testing.T) {
	t.Parallel()
	d := (&account{endpoint: "http://" + servers.FreeAddress(t) + "/" + servers.AzuriteAccount}).open(t, "pictures")
	start := time.Now()
	for _, size := range []int{100, 9 << 20} {
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			if _, err := d.Put(t.Context(), "key", bytes.NewReader(random(size)), opts); !errors.Is(err, storagedrivers.ErrUnavailable) {
				t.Errorf("error %v, want unavailable", err)
			}
		}
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestCutWhileStoring: blocks are sent again, and an incomplete object is not stored.
func TestCutWhileStoring(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	host, path, _ := strings.Cut(strings.TrimPrefix(a.endpoint, "http://"), "/")
	direct := a.first(t).(*driver)
	for _, size := range []int{1 << 20, 9 << 20} {
		for _, at := range []int64{10, 500 << 10, 6 << 20} {
			if at > int64(size) {
				continue
			}
			proxy := faults.New(t, host)
			d := (&account{endpoint: "http://" + proxy.Address + "/" + path}).open(t, direct.name)
			key, data := "k"+time.Now().Format("150405.000000000"), random(size)
			proxy.CutAfter(at)
			info, err := d.Put(t.Context(), key, bytes.NewReader(data), create)
			switch {
			case err == nil:
				holds(t, direct, key, data, info)
			case errors.Is(err, storagedrivers.ErrUnavailable):
				missing(t, direct, key)
			default:
				t.Errorf("%d bytes cut at %d: %v", size, at, err)
			}
			if proxy.Cuts() != 1 {
				t.Errorf("%d bytes at %d: %d cuts", size, at, proxy.Cuts())
			}
			if at == 6<<20 && err != nil {
				t.Errorf("a block was not sent again: %v", err)
			}
			_ = d.Close()
		}
	}
}

// TestCutWhileReading: a reader continues where it was cut, but never in another object.
func TestCutWhileReading(t *testing.T) {
	t.Parallel()
	a := &account{endpoint: startFake(t)}
	data := random(1 << 20)
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
		if _, err := d.Put(t.Context(), "key", bytes.NewReader(data), create); err != nil {
			t.Fatal(err)
		}
		body, _, err := d.Open(t.Context(), "key", storagedrivers.Range{})
		if err != nil {
			t.Fatal(err)
		}
		if replaced {
			if _, err := direct.Put(t.Context(), "key", bytes.NewReader(random(2<<20)), overwrite); err != nil {
				t.Fatal(err)
			}
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
	data := random(20 << 20)
	for range 30 {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(50*time.Millisecond))
		_, err := d.Put(ctx, "key", bytes.NewReader(data), overwrite)
		cancel()
		if err == nil {
			t.Error("stored, but refused")
		}
	}
}
