package resumable

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestAppend: bytes that are cut at many places arrive whole, and each offset is kept.
func TestAppend(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		all := random(2*fullPiece + 12345)
		u := s.create(t, Record{Owner: owner, Kind: "file", Length: int64(len(all))})
		for _, end := range []int{0, 1, 100_000, fullPiece, fullPiece + 1, 2*fullPiece + 5} {
			u = s.find(t, u)
			at := int(u.Offset())
			err := u.Append(t.Context(), body(u.Offset(), cut(all[at:], end-at)))
			if !errors.Is(err, errCut) || u.Offset() != int64(end) {
				t.Fatalf("cut at %d: offset %d, error %v", end, u.Offset(), err)
			}
		}
		u = s.find(t, u)
		if err := u.Append(t.Context(), body(u.Offset(), bytes.NewReader(all[u.Offset():]))); err != nil || !u.Complete() {
			t.Fatalf("the rest: offset %d, error %v", u.Offset(), err)
		}
		if u = s.find(t, u); !u.Complete() || !bytes.Equal(u.content(t), all) {
			t.Errorf("it is not complete or has other bytes: offset %d", u.Offset())
		}
	})
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	sum := func(text string) []byte {
		sum := sha1.Sum([]byte(text))
		return sum[:]
	}
	tests := map[string]struct {
		offset int64
		body   []string // pieces; "!" cuts
		sum    []byte
		want   error
		end    int64
	}{
		"offset too high":      {1, []string{"x"}, nil, ErrOffset, 0},
		"offset too low":       {-1, []string{"x"}, nil, ErrOffset, 0},
		"too long":             {0, []string{"123456"}, nil, ErrTooLarge, 0},
		"too long, in pieces":  {0, []string{"12345", "6"}, nil, ErrTooLarge, 0},
		"complete":             {0, []string{"12345"}, nil, nil, 5},
		"nothing":              {0, []string{""}, nil, nil, 0},
		"checksum":             {0, []string{"123"}, sum("123"), nil, 3},
		"other checksum":       {0, []string{"123"}, sum("12"), ErrChecksum, 0},
		"checksum, cut":        {0, []string{"123", "!"}, sum("12345"), errCut, 0},
		"checksum, too long":   {0, []string{"123456"}, sum("123456"), ErrTooLarge, 0},
		"checksum of all":      {0, []string{"12345"}, sum("12345"), nil, 5},
		"checksum of nothing":  {0, []string{""}, sum(""), nil, 0},
		"wrong sum of nothing": {0, []string{""}, sum("x"), ErrChecksum, 0},
	}
	each(t, func(t *testing.T, s *Store) {
		s.MaxOpen = len(tests)
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				u := s.create(t, Record{Owner: owner, Length: 5})
				var pieces []io.Reader
				for _, text := range tt.body {
					if text == "!" {
						pieces = append(pieces, failing{})
					}
					pieces = append(pieces, strings.NewReader(text))
				}
				b := body(tt.offset, io.MultiReader(pieces...))
				b.Sum, b.Hash = tt.sum, sha1.New()
				err := u.Append(t.Context(), b)
				if !errors.Is(err, tt.want) || u.Offset() != tt.end {
					t.Errorf("offset %d, error %v; want %d and %v", u.Offset(), err, tt.end, tt.want)
				}
				if found := s.find(t, u); found.Offset() != tt.end {
					t.Errorf("then offset %d, want %d", found.Offset(), tt.end)
				}
			})
		}
	})
}

// TestVerifiedTooLong: nothing of a body with a checksum is stored if it is longer than the upload.
func TestVerifiedTooLong(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		all := random(2 * bufferSize)
		sum := sha1.Sum(all)
		u := s.create(t, Record{Owner: owner, Length: int64(len(all) - 1)})
		b := body(0, bytes.NewReader(all))
		b.Sum, b.Hash = sum[:], sha1.New()
		if err := u.Append(t.Context(), b); !errors.Is(err, ErrTooLarge) || s.find(t, u).Offset() != 0 {
			t.Errorf("offset %d, error %v", s.find(t, u).Offset(), err)
		}
	})
}

// TestTakeOver: a request takes over from another one that waits for its client. That one stores
// nothing any more.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		const all = "1234567890"
		u := s.create(t, Record{Owner: owner, Length: int64(len(all))})
		dead, client := io.Pipe()
		ended := make(chan error)
		go func() {
			b := body(0, dead)
			b.Interrupt = func() { dead.CloseWithError(errCut) }
			ended <- s.find(t, u).Append(t.Context(), b)
		}()
		if _, err := client.Write([]byte(all[:3])); err != nil {
			t.Fatal(err)
		}
		if err := s.find(t, u).Append(t.Context(), body(5, strings.NewReader(all[5:]))); !errors.Is(err, ErrOffset) {
			t.Errorf("at another offset: %v", err)
		}
		for { // as a client that asks for the offset again
			other := s.find(t, u)
			err := other.Append(t.Context(), body(other.Offset(), strings.NewReader(all[other.Offset():])))
			if err == nil {
				break
			}
			if !errors.Is(err, ErrOffset) {
				t.Fatal(err)
			}
		}
		if err := <-ended; err == nil {
			t.Error("the earlier request succeeds")
		}
		if got := s.find(t, u).content(t); string(got) != all {
			t.Errorf("got %q", got)
		}
	})
}

// TestInterrupted: a request that another one has interrupted reports that the upload has another
// offset, not the error of its reader. Its client may then continue.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3})
		earlier, later := s.find(t, u), s.find(t, u)
		reader, writer := io.Pipe()
		reading := make(chan struct{})
		silent := body(0, io.MultiReader(begun{reading}, reader))
		silent.Interrupt = func() { writer.CloseWithError(errCut) }
		ended := make(chan error)
		go func() { ended <- earlier.Append(t.Context(), silent) }()
		<-reading
		if err := later.Append(t.Context(), body(0, strings.NewReader("123"))); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, ErrOffset) {
			t.Errorf("the interrupted request: %v", err)
		}
	})
}

// begun is an empty reader that closes a channel.
type begun struct{ reading chan struct{} }

func (b begun) Read([]byte) (int, error) {
	close(b.reading)
	return 0, io.EOF
}

// TestWaitingRequest: a request that waits for the storage with bytes of its client is not taken
// for dead. One that waits for its client is.
func TestWaitingRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		reader io.Reader
		want   error
	}{
		{"for the storage", strings.NewReader("x"), ErrOffset},
		{"for its client", strings.NewReader(""), nil},
		{"after an error", failing{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &writer{ended: make(chan struct{})}
			a := &appending{writer: w, body: body(0, c.reader)}
			_, _ = a.read(make([]byte, 1))
			if err := w.silent(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// TestLiveRequest: a request whose client sends bytes is not interrupted by another one.
func TestLiveRequest(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: Unknown})
		mine, other := s.find(t, u), s.find(t, u)
		refused := make(chan error, 1)
		n := 0
		live := readByte(func() (byte, error) {
			if n++; n == 2 { // this request is known
				go func() { refused <- other.Append(t.Context(), body(0, strings.NewReader("abc"))) }()
			}
			select {
			case err := <-refused:
				if !errors.Is(err, ErrOffset) {
					t.Errorf("the other request: %v", err)
				}
				return 0, io.EOF
			case <-time.After(silentTime / 20):
				return 'x', nil
			}
		})
		if err := mine.Append(t.Context(), body(0, live)); err != nil {
			t.Errorf("the live request: %v", err)
		}
		if got := s.find(t, u).Offset(); got != int64(n-1) {
			t.Errorf("offset %d of %d", got, n-1)
		}
	})
}

// readByte is a reader of one byte at a time.
type readByte func() (byte, error)

func (f readByte) Read(p []byte) (n int, err error) {
	if p[0], err = f(); err == nil {
		n = 1
	}
	return n, err
}

// TestRace: of many requests at one offset exactly one succeeds, as if each were in another
// process.
func TestRace(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3})
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := map[string]int{}
		same := make([]*Upload, 10)
		for n := range same {
			same[n] = s.find(t, u)
		}
		for n, mine := range same {
			wg.Go(func() {
				text := fmt.Sprintf("%03d", n)
				a := &appending{Upload: mine, writer: new(writer), body: body(0, strings.NewReader(text)), limit: 3}
				err := a.run(t.Context()) // without the registry of this process
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won[text]++
				} else if !errors.Is(err, ErrOffset) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		got := string(s.find(t, u).content(t))
		if len(won) != 1 || won[got] != 1 {
			t.Errorf("stored %q, won %v", got, won)
		}
	})
}

func TestSetLength(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: Unknown})
		if err := u.Append(t.Context(), body(0, strings.NewReader("123"))); err != nil || u.Complete() {
			t.Fatalf("complete %t, error %v", u.Complete(), err)
		}
		other := s.find(t, u)
		if err := u.SetLength(t.Context(), 3); err != nil || !u.Complete() {
			t.Errorf("complete %t, error %v", u.Complete(), err)
		}
		if err := other.SetLength(t.Context(), 4); !errors.Is(err, ErrLength) {
			t.Errorf("another length: %v", err)
		}
		if err := s.find(t, u).SetLength(t.Context(), 3); err != nil {
			t.Errorf("the same length: %v", err)
		}
	})
}

// TestInterruptedContext: the end of the request's context does not lose what was received.
func TestInterruptedContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 5})
		ctx, cancel := context.WithCancel(t.Context())
		r := io.MultiReader(strings.NewReader("123"), readFunc(func() error { cancel(); return errCut }))
		if err := u.Append(ctx, body(0, r)); !errors.Is(err, errCut) {
			t.Errorf("error %v", err)
		}
		if got := s.find(t, u).Offset(); got != 3 {
			t.Errorf("offset %d", got)
		}
	})
}

type readFunc func() error

func (f readFunc) Read([]byte) (int, error) { return 0, f() }

// TestWriterStays: the end of a request does not unregister the one that has taken over from it.
func TestWriterStays(t *testing.T) {
	t.Parallel()
	ws := writers{by: map[string]*writer{}}
	first := &writer{interrupt: func() {}, ended: make(chan struct{})}
	second := &writer{interrupt: func() {}, ended: make(chan struct{})}
	ws.by["a"] = second
	ws.end("a", first)
	if !ws.has("a") {
		t.Error("the later request is not registered any more")
	}
	ws.end("a", second)
	if ws.has("a") {
		t.Error("a request that has ended is registered")
	}
}

// TestTakeOverAfterBytes: a request that takes over from another one learns the offset that the
// other one has left.
func TestTakeOverAfterBytes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *Store) {
		u := s.create(t, Record{Owner: owner, Length: 3})
		late, name := s.find(t, u), u.location()
		u.add(t, 0, "12")
		earlier := &writer{interrupt: func() {}, ended: make(chan struct{})}
		if _, err := s.Active.writing.begin(t.Context(), name, earlier); err != nil {
			t.Fatal(err)
		}
		close(earlier.ended) // but it is still registered
		if err := late.Append(t.Context(), body(0, strings.NewReader(""))); !errors.Is(err, ErrOffset) || late.Offset() != 2 {
			t.Errorf("offset %d, error %v", late.Offset(), err)
		}
	})
}

// TestLostBytes: a request from which another one has taken over stores no piece.
func TestLostBytes(t *testing.T) {
	t.Parallel()
	s := storeOn(t, memory.New())
	u := s.create(t, Record{Owner: owner, Length: 3})
	a := &appending{Upload: u, writer: &writer{lost: true}, body: body(0, strings.NewReader("123")), limit: 3}
	if err := a.run(t.Context()); !errors.Is(err, ErrOffset) || s.find(t, u).Offset() != 0 {
		t.Errorf("offset %d, error %v", s.find(t, u).Offset(), err)
	}
}

// TestOffsetIsDurable: the bytes before an acknowledged offset survive a power failure, also those
// before the end of a connection.
func TestOffsetIsDurable(t *testing.T) {
	t.Parallel()
	for _, r := range []io.Reader{strings.NewReader("123"), cut([]byte("12345"), 3)} {
		var last string // operation on the bytes
		s := storeOn(t, derivedtest.NewLocal(t, func(op, _ string) error {
			if op == "write" || op == "flush" {
				last = op
			}
			return nil
		}))
		u := s.create(t, Record{Length: 5})
		err := u.Append(t.Context(), body(0, r))
		if err != nil && !errors.Is(err, errCut) || u.Offset() != 3 || last != "flush" {
			t.Errorf("offset %d after a %s, error %v", u.Offset(), last, err)
		}
	}
}

// stalled adds n bytes of a request whose connection is silent then, until the test ends.
func (s *Store) stalled(t *testing.T, u *Upload, n int) {
	t.Helper()
	r, client := io.Pipe()
	ended := make(chan error)
	go func() {
		b := body(0, r)
		b.Interrupt = func() { r.CloseWithError(errCut) }
		ended <- s.find(t, u).Append(t.Context(), b)
	}()
	if _, err := client.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.CloseWithError(errCut)
		if err := <-ended; err == nil {
			t.Error("the silent request has succeeded")
		}
	})
	synctest.Wait()
}

// TestLossOfCrash: a process that dies loses at most 16 MiB of a request.
func TestLossOfCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const received, most = 17 << 20, 16 << 20
		s := storeOn(t, memory.New())
		u := s.create(t, Record{Length: received + 1})
		s.stalled(t, u, received)
		if lost := received - s.find(t, u).Offset(); lost > most {
			t.Errorf("it would lose %d bytes", lost)
		}
	})
}

// TestTakeOverInTime: a request takes over from a silent one within a second.
func TestTakeOverInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storeOn(t, memory.New())
		u := s.create(t, Record{Length: 5})
		s.stalled(t, u, 1)
		start := time.Now()
		err := s.find(t, u).Append(t.Context(), body(0, strings.NewReader("12345")))
		if took := time.Since(start); err != nil && !errors.Is(err, ErrOffset) || took > time.Second {
			t.Errorf("it took %v, error %v", took, err)
		}
	})
}

// heap is an endless reader, and a writer, that measures the heap with each MiB.
type heap struct {
	bytes int // since the last time
	most  uint64
}

func (h *heap) Read(p []byte) (int, error) {
	clear(p)
	return h.Write(p)
}

// Write measures too.
func (h *heap) Write(p []byte) (int, error) {
	if h.bytes += len(p); h.bytes >= 1<<20 {
		h.bytes = 0
		h.measure()
	}
	return len(p), nil
}

func (h *heap) measure() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
	return m.HeapAlloc
}

// TestMemory: an upload of 256 MiB needs less than 32 MiB of the heap. It is not parallel, because
// other tests need memory too.
func TestMemory(t *testing.T) { //nolint:paralleltest // see above
	if testing.Short() {
		t.Skip("writing 256 MiB takes seconds")
	}
	const size, limit = 256 << 20, 32 << 20
	for name, driver := range map[string]func(d *local.Driver) storagedrivers.Driver{
		"growing": func(d *local.Driver) storagedrivers.Driver { return d },
		"pieces":  func(d *local.Driver) storagedrivers.Driver { return struct{ storagedrivers.Driver }{d} },
	} {
		t.Run(name, func(t *testing.T) {
			d := local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
			s := storeOn(t, driver(d))
			u := s.create(t, Record{Owner: owner, Kind: "file", Filename: "a.bin", Length: size})
			runtime.GC()
			var h heap
			before := h.measure()
			err := u.Append(t.Context(), body(0, io.LimitReader(&h, size)))
			if err != nil || !u.Complete() {
				t.Fatalf("offset %d, error %v", u.Offset(), err)
			}
			staged, err := u.storage.StageGrown(t.Context(), nil, u.objects()...)
			if err != nil {
				t.Fatal(err)
			}
			defer staged.Close()
			if n, err := io.Copy(&h, staged); n != size || err != nil {
				t.Errorf("read %d bytes, error %v", n, err)
			}
			used := h.most - before
			t.Logf("%d KiB at most", used>>10)
			if used >= limit {
				t.Errorf("%d MiB were needed", used>>20)
			}
		})
	}
}
