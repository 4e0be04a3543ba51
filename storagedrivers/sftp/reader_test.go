package sftp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

func TestReader(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	for _, size := range []int{0, 1, 1000} {
		content := randomBytes(size)
		_, err := d.Put(t.Context(), "object", bytes.NewReader(content), overwrite)
		is(t, err, nil)
		body, _, err := d.Open(t.Context(), "object", all)
		is(t, err, nil)
		if err := iotest.TestReader(body, content); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		is(t, body.Close(), nil)
		is(t, body.Close(), fs.ErrClosed)
		_, err = body.Read(make([]byte, 1))
		is(t, err, fs.ErrClosed)
	}
}

// TestReaderSeeksAnywhere: a reader returns the right bytes at any offset.
func TestReaderSeeksAnywhere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	content := randomBytes(6 << 20)
	_, err := d.Put(t.Context(), "object", bytes.NewReader(content), create)
	is(t, err, nil)
	body, _, err := d.Open(t.Context(), "object", all)
	is(t, err, nil)
	defer body.Close()
	seeker := body.(io.ReadSeeker)
	random := rand.New(rand.NewPCG(1, 2))
	at := 0
	for range 300 {
		switch random.IntN(3) {
		case 0:
			at = random.IntN(len(content))
		case 1: // a little further, or back
			at = min(max(0, at+random.IntN(8*packet)-2*packet), len(content))
		}
		if _, err := seeker.Seek(int64(at), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, min(random.IntN(10*packet), len(content)-at))
		if _, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, content[at:at+len(got)]) {
			t.Fatalf("reading %d bytes at %d: error %v", len(got), at, err)
		}
		at += len(got)
	}
	if most := len(body.(*reader).ahead); most > maxRequests {
		t.Errorf("%d packets were asked for at once", most)
	}
}

// TestReaderOfShortened: reading a file that is truncated meanwhile returns an error.
func TestReaderOfShortened(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	_, err := d.Put(t.Context(), "object", bytes.NewReader(randomBytes(1<<20)), create)
	is(t, err, nil)
	body, _, err := d.Open(t.Context(), "object", all)
	is(t, err, nil)
	defer body.Close()
	must(t, os.Truncate(filepath.Join(h.folder, "object"), 100_000))
	_, err = io.Copy(io.Discard, body)
	is(t, err, io.ErrUnexpectedEOF)
	isNot(t, err, storagedrivers.ErrUnavailable)
	_, err = body.(io.ReaderAt).ReadAt(make([]byte, 10), 99_995)
	is(t, err, io.ErrUnexpectedEOF)
}

const roundTrip = 20 * time.Millisecond

// distant returns a driver on a host with a delay of 20 ms, and a plain client of it that waits for
// the reply to each packet.
func distant(tb testing.TB) (*driver, *pkgsftp.Client) {
	tb.Helper()
	h := newHost(tb)
	proxy := faults.New(tb, h.config.Address)
	config := h.config
	config.Address = proxy.Address
	d, err := newDriver(config, slog.New(slog.DiscardHandler))
	must(tb, err)
	tb.Cleanup(func() { d.Close() })
	must(tb, d.Check(tb.Context()))
	shell, client, err := d.pool.dialer.dial(tb.Context(), new(atomic.Int64))
	must(tb, err)
	tb.Cleanup(func() {
		shell.Close()
		client.Close()
	})
	must(tb, errors.Join(pkgsftp.UseConcurrentReads(false)(client), pkgsftp.UseConcurrentWrites(false)(client)))
	proxy.SetLatency(roundTrip)
	return d, client
}

// rates are in bytes per second.
type rates struct{ write, read, plainWrite, plainRead float64 }

// measure transfers size bytes by the driver, and 1 MiB packet by packet, in both directions.
func measure(tb testing.TB, d *driver, client *pkgsftp.Client, size int) rates {
	tb.Helper()
	content, few := randomBytes(size), randomBytes(1<<20)
	rate := func(size int, f func() error) float64 {
		start := time.Now()
		must(tb, f())
		return float64(size) / time.Since(start).Seconds()
	}
	var r rates
	r.write = rate(len(content), func() error {
		_, err := d.Put(tb.Context(), "object", bytes.NewReader(content), overwrite)
		return err
	})
	r.read = rate(len(content), func() error {
		body, _, err := d.Open(tb.Context(), "object", all)
		if err != nil {
			return err
		}
		defer body.Close()
		return readPlainly(body, content)
	})
	file, err := client.Create("plain")
	must(tb, err)
	defer file.Close()
	r.plainWrite = rate(len(few), func() error {
		_, err := io.CopyBuffer(struct{ io.Writer }{file}, struct{ io.Reader }{bytes.NewReader(few)}, make([]byte, packet))
		return err
	})
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		tb.Fatal(err)
	}
	r.plainRead = rate(len(few), func() error { return readPlainly(file, few) })
	return r
}

// readPlainly reads like http.ServeContent: 32 KiB at a time.
func readPlainly(r io.Reader, want []byte) error {
	got := bytes.NewBuffer(make([]byte, 0, len(want)+bytes.MinRead))
	_, err := io.CopyBuffer(struct{ io.Writer }{got}, struct{ io.Reader }{r}, make([]byte, packet))
	if err == nil && !bytes.Equal(got.Bytes(), want) {
		return errors.New("what was read differs")
	}
	return err
}

// TestDistantHost: not every packet waits for a round trip.
func TestDistantHost(t *testing.T) {
	d, client := distant(t)
	const least = 3 // 1 would be packet by packet; an idle machine reaches more than 10
	var read, write float64
	for range 3 { // a machine that is busy may spoil one
		r := measure(t, d, client, 16<<20)
		read, write = max(read, r.read/r.plainRead), max(write, r.write/r.plainWrite)
		if read >= least && write >= least {
			break
		}
	}
	t.Logf("reading is %.0f times as fast as packet by packet, writing %.0f times", read, write)
	if read < least || write < least {
		t.Errorf("reading is %.1f times as fast, writing %.1f times, want %d times", read, write, least)
	}
}

func TestReaderEndsWithContext(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	_, err := d.Put(t.Context(), "object", bytes.NewReader(randomBytes(1<<20)), create)
	is(t, err, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	body, _, err := d.Open(ctx, "object", all)
	is(t, err, nil)
	defer body.Close()
	cancel(storagedrivers.ErrUnavailable)
	_, err = body.Read(make([]byte, 10))
	is(t, err, context.Canceled)
	is(t, err, storagedrivers.ErrUnavailable)
	_, err = body.(io.ReaderAt).ReadAt(make([]byte, 10), 0)
	is(t, err, context.Canceled)
}
