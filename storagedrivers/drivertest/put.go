package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
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

func testCreateRace(t *testing.T, e *env) {
	race := func(key string, n int, size int64) {
		e.raceToCreate(t, key, n, size, true, e.storage)
	}
	race("small", 16, 100)
	race("new/folders/small", 16, 100)
	race("middle", 4, 300*kib)
	race("large", 2, 9*mib)
	e.holds(t, "small", "new/folders/small", "middle", "large")
}

func testCreateRaceOfTwo(t *testing.T, e *env) {
	other := e.another(t)
	if other == nil {
		t.Skip("the harness cannot open a second driver")
	}
	one := e.storage.Features().Create == storagedrivers.Atomic
	race := func(key string, n int, size int64) {
		e.raceToCreate(t, key, n, size, one, e.storage, other)
	}
	race("small", 16, 100)
	race("new/folders/small", 16, 100)
	race("middle", 4, 300*kib)
	race("large", 2, 9*mib)
	e.holds(t, "small", "new/folders/small", "middle", "large")
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
	if err != nil {
		t.Fatalf("reading %q: %v", key, err)
	}
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
