package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func testRoundTrip(t *testing.T, e *env) {
	sizes := map[string]int64{"empty": 0, "byte": 1, "64k": 64 * kib, "9m": 9 * mib}
	for key, size := range sizes {
		e.put(t, key, content{1, size}, create)
		e.has(t, key, content{1, size})
	}
	e.put(t, "folder/sub/64k", content{2, 64 * kib}, create)
	e.has(t, "folder/sub/64k", content{2, 64 * kib})

	src := newSource(content{3, 64 * kib})
	info, err := e.driver.Put(t.Context(), "direct.txt", src, create)
	if err != nil || info.Size != 64*kib || src.closed {
		t.Errorf("the driver's own put: %d bytes, source closed %t, error %v", info.Size, src.closed, err)
	}
	e.has(t, "direct.txt", content{3, 64 * kib})
	e.holds(t, "empty", "byte", "64k", "9m", "folder/sub/64k", "direct.txt")
}

func testCreateTwice(t *testing.T, e *env) {
	for key, size := range map[string]int64{"small": 100, "folder/small": 100, "large": 9 * mib, "empty": 0} {
		e.put(t, key, content{1, size}, create)
		for _, again := range []int64{0, 100, 9 * mib} {
			src := newSource(content{2, again})
			_, err := e.storage.Put(t.Context(), key, src, create)
			fails(t, err, fs.ErrExist, "creating "+key+" again")
			if src.closed {
				t.Errorf("creating %s again closed the source", key)
			}
		}
		e.has(t, key, content{1, size})
	}
	e.holds(t, "small", "folder/small", "large", "empty")
}

// testRepeatCreate: an upload that is retried because its reply was lost is recognised, if the
// driver supports it.
func testRepeatCreate(t *testing.T, e *env) {
	opts := storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly, ID: "FIRST"}
	for key, size := range map[string]int64{"empty": 0, "small": 100, "large": 9 * mib} {
		c := content{1, size}
		first := e.put(t, key, c, opts)
		again, err := e.storage.Put(t.Context(), key, newSource(c), opts)
		if e.storage.Features().Repeat {
			succeeds(t, err, "repeating an upload")
			sameInfo(t, "repeating an upload", again, first)
		} else {
			fails(t, err, fs.ErrExist, "repeating an upload")
		}
		other := opts
		other.ID = "SECOND"
		_, err = e.storage.Put(t.Context(), key, newSource(c), other)
		fails(t, err, fs.ErrExist, "another upload of the name")
		e.has(t, key, c)
	}
	e.holds(t, "empty", "small", "large")
}

// testCreateRace: one of several uploads in this process wins, and one of those of two processes,
// if the driver creates atomically.
func testCreateRace(t *testing.T, e *env) {
	var want []string
	race := func(folder string, one bool, over ...*storagedrivers.Storage) {
		for key, tt := range map[string]struct {
			n    int
			size int64
		}{"small": {16, 100}, "new/folders/small": {16, 100}, "middle": {4, 300 * kib}, "large": {2, 9 * mib}} {
			e.raceToCreate(t, folder+key, tt.n, tt.size, one, over...)
			want = append(want, folder+key)
		}
	}
	race("", true, e.storage)
	if other := e.another(t); other != nil {
		race("two/", e.storage.Features().Create == storagedrivers.Atomic, e.storage, other)
	}
	e.holds(t, want...)
}

// raceToCreate creates key in n goroutines at the same time. All but the winners must get ErrExist,
// and the object must be complete and that of a winner. Even with BestEffort there is one winner
// within a process.
func (e *env) raceToCreate(t *testing.T, key string, n int, size int64, one bool, over ...*storagedrivers.Storage) {
	t.Helper()
	errs := make([]error, n)
	atOnce(n, func(i int) {
		c := content{uint64(i), size}
		_, errs[i] = over[i%len(over)].Put(t.Context(), key, newSource(c), create)
	})
	e.oneWon(t, key, errs, one)
}

// oneWon asserts the outcome of a race to create key, in which goroutine i puts content i.
func (e *env) oneWon(t *testing.T, key string, errs []error, one bool) {
	t.Helper()
	winners := map[uint64]bool{}
	for i, err := range errs {
		switch {
		case err == nil:
			winners[uint64(i)] = true
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("creating %q in a race: %v", key, err)
		}
	}
	if len(winners) == 0 || one && len(winners) > 1 {
		t.Errorf("%q was created by %d of %d", key, len(winners), len(errs))
	}
	b, err := io.ReadAll(e.open(t, key))
	test.Must(t, err, "reading", key)
	c, err := identify(b)
	if err != nil || !winners[c.seed] {
		t.Errorf("%q holds the content of %d, winners %v: %v", key, c.seed, winners, err)
	}
}

// atOnce runs f n times in parallel.
func atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func testOverwrite(t *testing.T, e *env) {
	e.put(t, "new/one", content{1, 100}, overwrite)
	e.has(t, "new/one", content{1, 100})
	for i, size := range []int64{9 * mib, 100, 64 * kib, 0, 1} {
		c := content{uint64(i), size}
		e.put(t, "new/one", c, overwrite)
		e.has(t, "new/one", c)
	}
	e.holds(t, "new/one")
}

// testDated: objects of one size under one key have different times.
func testDated(t *testing.T, e *env) {
	if !e.storage.Features().Dated {
		t.Skip("the driver may store two objects with one size and time")
	}
	seen := map[int64]int{}
	for i, opts := range []storagedrivers.PutOptions{overwrite, overwrite, overwrite, overwrite, create} {
		if i > 2 {
			succeeds(t, e.storage.Delete(t.Context(), "object"), "deleting")
		}
		at := e.put(t, "object", content{uint64(i), 100}, opts).ModTime.UnixNano()
		if earlier, found := seen[at]; found {
			t.Errorf("object %d has the time of object %d", i, earlier)
		}
		seen[at] = i
	}
}

// testChangeWhileReading: a reader stays on the object that it was opened on.
func testChangeWhileReading(t *testing.T, e *env) {
	old, now := content{1, 9 * mib}, content{2, 9*mib + 1}
	for _, replaced := range []bool{true, false} {
		e.put(t, "a/b", old, overwrite)
		body := e.open(t, "a/b")
		succeeds(t, equal(io.LimitReader(body, 64*kib), old.part(0, 64*kib)), "reading before")
		if replaced {
			e.put(t, "a/b", now, overwrite)
			e.has(t, "a/b", now)
		} else {
			succeeds(t, e.storage.Delete(t.Context(), "a/b"), "deleting an open object")
			e.hasNot(t, "a/b")
		}
		e.stays(t, "the change", body, old.part(64*kib, old.size-64*kib))
		closed(t, body)
	}
	e.holds(t)
}

// stays asserts that a reader that was opened before a change stays on old, or fails with an error
// if the driver does not guarantee it.
func (e *env) stays(t *testing.T, what string, body, old io.Reader) {
	t.Helper()
	err := equal(body, old)
	if errors.Is(err, storagedrivers.ErrChanged) && e.driver.Features().Replace != storagedrivers.Atomic {
		return
	}
	succeeds(t, err, "reading an object opened before "+what)
}

// testOverwritersAndReaders: every read returns some generation, complete.
func testOverwritersAndReaders(t *testing.T, e *env) {
	const writers, readers, rounds = 3, 3, 5
	size := func(seed uint64) int64 { return 300*kib + int64(seed) }
	e.put(t, "hot", content{0, size(0)}, create)
	over := []*storagedrivers.Storage{e.storage}
	if other := e.another(t); other != nil {
		over = append(over, other)
	}
	atOnce(writers+readers, func(i int) {
		for round := range rounds {
			if i >= writers {
				test.Is(t, e.readHot(t, over[i%len(over)]), nil, "reading between overwrites")
				continue
			}
			seed := uint64(i*rounds + round + 1)
			_, err := over[i%len(over)].Put(t.Context(), "hot", newSource(content{seed, size(seed)}), overwrite)
			succeeds(t, err, "overwriting in parallel")
		}
	})
	succeeds(t, e.readHot(t, e.storage), "reading in the end")
	e.holds(t, "hot")
}

func (e *env) readHot(t *testing.T, s *storagedrivers.Storage) error {
	late := s.Features().Replace != storagedrivers.Atomic
	body, info, err := s.Open(t.Context(), "hot", all)
	if late && visible(s, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closed(t, body)
	b, err := io.ReadAll(body)
	if late && errors.Is(err, storagedrivers.ErrChanged) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = identify(b); err != nil {
		return err
	}
	if info.ETag != "" && info.Size != int64(len(b)) {
		return fmt.Errorf("%d bytes with the info of %d", len(b), info.Size)
	}
	return nil
}

func testManyGoroutines(t *testing.T, e *env) {
	const n = 32
	want := make([]string, n)
	for i := range n {
		want[i] = fmt.Sprintf("folder%d/object%02d", i%4, i)
	}
	atOnce(n, func(i int) {
		key, c := want[i], content{uint64(i), 10*kib + int64(i)}
		_, err := e.storage.Put(t.Context(), key, newSource(c), create)
		succeeds(t, err, "storing in parallel")
		e.has(t, key, c)
		info, err := e.storage.Stat(t.Context(), key)
		if err != nil || info.Size != c.size {
			t.Errorf("stat in parallel: %d bytes, want %d, error %v", info.Size, c.size, err)
		}
		_, err = e.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: key})
		succeeds(t, err, "listing in parallel")
		_, err = e.storage.Put(t.Context(), key+".gone", newSource(c), create)
		succeeds(t, err, "storing in parallel")
		succeeds(t, e.storage.Delete(t.Context(), key+".gone"), "deleting in parallel")
	})
	e.holds(t, want...)
}

var errSource = errors.New("source failure")

// breaking are the offsets at which sources fail: at the start, in the first buffer, at the end of
// parts of an upload, and inside them.
var breaking = []int64{0, 1, 10 * kib, 8 * mib, 30 * mib}

func testSourceError(t *testing.T, e *env) {
	e.breaksAll(t, "creating", create, func() {
		e.hasNot(t, "folder/object")
		e.holds(t)
	})
	old := content{1, 64 * kib}
	e.put(t, "folder/object", old, create)
	e.breaksAll(t, "overwriting", overwrite, func() {
		e.has(t, "folder/object", old)
		e.holds(t, "folder/object")
	})
}

func (e *env) breaksAll(t *testing.T, what string, opts storagedrivers.PutOptions, unchanged func()) {
	t.Helper()
	for _, at := range breaking {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			e.breaks(t, fmt.Sprintf("%s from a source that fails at %d", what, at), at, want, opts)
			unchanged()
		}
	}
}

func (e *env) breaks(t *testing.T, what string, at int64, want error, opts storagedrivers.PutOptions) {
	t.Helper()
	src := failing(content{2, at + mib}, at, want)
	_, err := e.storage.Put(t.Context(), "folder/object", src, opts)
	fails(t, err, want, what)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("%s: got %v, which blames the backend", what, err)
	}
	if src.closed {
		t.Errorf("%s closed it", what)
	}
}

func testCancelWhileStoring(t *testing.T, e *env) {
	old := content{1, 64 * kib}
	e.put(t, "old", old, create)
	for _, at := range []int64{0, 10 * kib, 9 * mib} {
		for key, opts := range map[string]storagedrivers.PutOptions{"new": create, "old": overwrite} {
			ctx, cancel := context.WithCancel(t.Context())
			src := newSource(content{2, 30 * mib})
			src.at, src.event = at, func() error {
				cancel()
				return nil
			}
			_, err := e.storage.Put(ctx, key, src, opts)
			cancel()
			fails(t, err, context.Canceled, fmt.Sprintf("storing %s, cancelled at %d", key, at))
			if src.closed {
				t.Errorf("storing %s, cancelled at %d, closed the source", key, at)
			}
			e.hasNot(t, "new")
			e.has(t, "old", old)
			e.holds(t, "old")
		}
	}
}

// testCancelWhileReading: reading after the end of ctx returns correct bytes or an error, and never
// looks like the end of a shorter object.
func testCancelWhileReading(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, _, err := e.storage.Open(ctx, "object", all)
	test.Must(t, err)
	defer body.Close() // it may report the cancellation
	succeeds(t, equal(io.LimitReader(body, kib), c.part(0, kib)), "reading before")
	cancel()
	b, err := io.ReadAll(body)
	if err == nil {
		_, err = io.ReadFull(c.part(kib, c.size-kib), make([]byte, len(b)))
		succeeds(t, err, "reading after")
		if int64(len(b)) != c.size-kib {
			t.Errorf("the reader ended after %d of %d bytes as if it were all", len(b)+kib, c.size)
		}
	}
	e.has(t, "object", c)
}

func testCancelledBefore(t *testing.T, e *env) {
	e.put(t, "object", content{1, 100}, create)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, key := range []string{"object", "missing"} {
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			_, err := e.storage.Put(ctx, key, newSource(content{2, 100}), opts)
			fails(t, err, context.Canceled, "storing")
		}
		body, _, err := e.storage.Open(ctx, key, all)
		if err == nil {
			closed(t, body)
		}
		fails(t, err, context.Canceled, "opening")
		_, err = e.storage.Stat(ctx, key)
		fails(t, err, context.Canceled, "stat")
		fails(t, e.storage.Delete(ctx, key), context.Canceled, "deleting")
	}
	_, err := e.storage.List(ctx, storagedrivers.ListOptions{})
	fails(t, err, context.Canceled, "listing")
	fails(t, e.storage.Check(ctx), context.Canceled, "checking")
	e.has(t, "object", content{1, 100})
	e.holds(t, "object")
}

// streamed is a source whose size is not known, until it was read to its end. It pauses once.
type streamed struct {
	source
	ended bool
}

// newStreamed returns a source that waits after at bytes, and then fails with err if it is not nil.
func newStreamed(c content, at int64, err error) *streamed {
	s := &streamed{source: *newSource(c)}
	s.at, s.event = at, func() error {
		time.Sleep(50 * time.Millisecond)
		return err
	}
	return s
}

func (s *streamed) Read(p []byte) (int, error) {
	n, err := s.source.Read(p)
	s.ended = s.ended || errors.Is(err, io.EOF)
	return n, err
}

func (s *streamed) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd && !s.ended {
		return 0, storagedrivers.ErrSizeUnknown
	}
	return s.source.Seek(offset, whence)
}

// testStream: an object whose size is not known is stored whole or not at all. The race detector
// watches each size in one mode: it makes bytes dear.
func testStream(t *testing.T, e *env) {
	if !e.driver.Features().Streams {
		t.Skip("the driver needs the size first")
	}
	// 20 MiB and 24 MiB are the end of parts.
	for i, size := range []int64{8*mib + 1, 20 * mib, 24 * mib, 30*mib + 7} {
		for name, opts := range map[string]storagedrivers.PutOptions{"created": create, "overwritten": overwrite} {
			if RaceDetector && (i%2 == 0) != (name == "created") {
				continue
			}
			c, key := content{uint64(i), size}, fmt.Sprintf("f/%s%d", name, i)
			src := newStreamed(c, 10*mib, nil)
			info, err := e.driver.Put(t.Context(), key, src, opts)
			succeeds(t, err, "storing "+key)
			if info.Size != size || src.closed {
				t.Errorf("%s has %d bytes, want %d; source closed %t", key, info.Size, size, src.closed)
			}
			now, err := e.storage.Stat(t.Context(), key)
			succeeds(t, err, "stat")
			sameInfo(t, "storing "+key, info, now)
			e.has(t, key, c)
			succeeds(t, e.storage.Delete(t.Context(), key), "deleting")
		}
	}
	old := content{9, 100}
	e.put(t, "f/old", old, create)
	_, err := e.driver.Put(t.Context(), "f/old", newStreamed(content{1, 12 * mib}, 10*mib, nil), create)
	fails(t, err, fs.ErrExist, "creating an existing object")
	for key, opts := range map[string]storagedrivers.PutOptions{"f/new": create, "f/old": overwrite} {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			src := newStreamed(content{1, 20 * mib}, 12*mib, want)
			_, err := e.driver.Put(t.Context(), key, src, opts)
			fails(t, err, want, "storing "+key+" from a source that fails")
			e.has(t, "f/old", old)
			e.holds(t, "f/old")
		}
		e.cancelStream(t, key, opts)
		e.has(t, "f/old", old)
		e.holds(t, "f/old")
	}
}

// cancelStream cancels a Put while its source waits.
func (e *env) cancelStream(t *testing.T, key string, opts storagedrivers.PutOptions) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src := newStreamed(content{1, 20 * mib}, 12*mib, nil)
	src.event = func() error {
		cancel()
		return ctx.Err()
	}
	_, err := e.driver.Put(ctx, key, src, opts)
	fails(t, err, context.Canceled, "storing "+key+", cancelled")
}
