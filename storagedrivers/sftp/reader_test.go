package sftp

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestReader(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	for _, size := range []int{0, 1, 1000} {
		content := test.Random(size)
		put(t, d, "object", content, overwrite)
		body, _, err := d.Open(t.Context(), "object", all)
		test.Is(t, err, nil)
		test.Is(t, iotest.TestReader(body, content), nil, size, "bytes")
		test.Is(t, body.Close(), nil)
		test.Is(t, body.Close(), fs.ErrClosed)
		_, err = body.Read(make([]byte, 1))
		test.Is(t, err, fs.ErrClosed)
	}
}

// TestReaderSeeksAnywhere: a reader returns the right bytes at any offset.
func TestReaderSeeksAnywhere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	content := test.Random(6 << 20)
	put(t, d, "object", content, create)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	defer body.Close()
	seeker := body.(io.ReadSeeker)
	random := rand.New(rand.NewPCG(1, 2))
	at := 0
	for range 300 {
		switch random.IntN(3) {
		case 0:
			at = random.IntN(len(content))
		case 1: // a little further, or back
			at = min(max(0, at+random.IntN(maxBlock)-maxBlock/4), len(content))
		}
		_, err := seeker.Seek(int64(at), io.SeekStart)
		test.Must(t, err)
		got := make([]byte, min(random.IntN(maxBlock/2), len(content)-at))
		if _, err := io.ReadFull(body, got); err != nil || !bytes.Equal(got, content[at:at+len(got)]) {
			t.Fatalf("reading %d bytes at %d: error %v", len(got), at, err)
		}
		at += len(got)
	}
}

// TestReaderOfShortened: reading a file that is truncated meanwhile returns an error.
func TestReaderOfShortened(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", test.Random(1<<20), create)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	defer body.Close()
	test.Must(t, os.Truncate(filepath.Join(h.folder, "object"), 100_000))
	_, err = io.Copy(io.Discard, body)
	test.Is(t, err, io.ErrUnexpectedEOF)
	test.IsNot(t, err, storagedrivers.ErrUnavailable)
	_, err = body.(io.ReaderAt).ReadAt(make([]byte, 10), 99_995)
	test.Is(t, err, io.ErrUnexpectedEOF)
}

// gate is a session's channel that withholds replies until it has received several requests of a
// type.
type gate struct {
	io.ReadWriteCloser
	request byte // the type
	seen    atomic.Int32
	opened  chan struct{}
	open    func() // closes opened
}

// requests is the number of requests after which a gate opens.
const requests = 8

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(p)
	if n > 0 && p[0] == g.request && g.seen.Add(1) == requests {
		g.open()
	}
	return n, err
}

func (g *gate) Write(p []byte) (int, error) {
	if g.seen.Load() > 0 {
		<-g.opened
	}
	return g.ReadWriteCloser.Write(p)
}

// TestRequestsBeforeReplies: not every packet waits for a round trip.
func TestRequestsBeforeReplies(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]byte{"reading": 5, "writing": 6} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, opened := t.TempDir(), make(chan struct{})
			open := sync.OnceFunc(func() { close(opened) })
			s := startServerOf(t, func(channel io.ReadWriteCloser) error {
				return serveFolder(root, &gate{ReadWriteCloser: channel, request: request, opened: opened, open: open})
			})
			t.Cleanup(open)
			h := s.host(root, 1)
			h.force = &abilities{true, true, true, true}
			d := h.driver(t, ".")
			content := make([]byte, 1<<20)
			put(t, d, "object", content, create)
			has(t, d, "object", content)
		})
	}
}

// TestRangeIsNotTheFile: reading a part of a large object requests little more than that.
func TestRangeIsNotTheFile(t *testing.T) {
	t.Parallel()
	const size = 16 << 20
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", test.Random(size), create)
	for name, read := range map[string]struct {
		rng  storagedrivers.Range
		part int64
		most int64
	}{
		"range":         {storagedrivers.Range{Offset: 1 << 20, Length: 100_000}, 100_000, 0},
		"head":          {all, 1000, firstBlock + 2*firstBlock},
		"half of range": {storagedrivers.Range{Offset: 1, Length: size / 2}, size / 4, 2 * maxBlock},
	} {
		body, _, err := d.Open(t.Context(), "object", read.rng)
		test.Is(t, err, nil)
		d.pool.mu.Lock()
		received := &d.pool.connections[0].received
		d.pool.mu.Unlock()
		before := received.Load()
		_, err = io.CopyN(io.Discard, body, read.part)
		test.Is(t, err, nil)
		r := body
		test.Is(t, r.Close(), nil)
		if got := received.Load() - before; got > read.part+read.most+read.part/10+10_000 {
			t.Errorf("%s: %d bytes were transferred for %d", name, got, read.part)
		}
	}
}

func TestReaderEndsWithContext(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	d := h.driver(t, ".")
	put(t, d, "object", test.Random(1<<20), create)
	ctx, cancel := context.WithCancelCause(t.Context())
	body, _, err := d.Open(ctx, "object", all)
	test.Is(t, err, nil)
	defer body.Close()
	cancel(storagedrivers.ErrUnavailable)
	_, err = body.Read(make([]byte, 10))
	test.Is(t, err, context.Canceled)
	test.Is(t, err, storagedrivers.ErrUnavailable)
	_, err = body.(io.ReaderAt).ReadAt(make([]byte, 10), 0)
	test.Is(t, err, context.Canceled)
}
