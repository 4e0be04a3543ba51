package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func testRoundTrip(t *testing.T, p *place) {
	sizes := map[string]int64{"empty": 0, "byte": 1, "64k": 64 * kib, "9m": 9 * mib}
	for key, size := range sizes {
		p.put(t, key, content{1, size}, create)
		p.has(t, key, content{1, size})
	}
	p.put(t, "folder/sub/64k", content{2, 64 * kib}, create)
	p.has(t, "folder/sub/64k", content{2, 64 * kib})

	src := newSource(content{3, 64 * kib})
	info, err := p.driver.Put(t.Context(), "direct.txt", src, create)
	if err != nil || info.Size != 64*kib || src.closed {
		t.Errorf("the driver's own put: %d bytes, source closed %t, error %v", info.Size, src.closed, err)
	}
	p.has(t, "direct.txt", content{3, 64 * kib})
	p.holds(t, "empty", "byte", "64k", "9m", "folder/sub/64k", "direct.txt")
}

func testCreateTwice(t *testing.T, p *place) {
	for key, size := range map[string]int64{"small": 100, "folder/small": 100, "large": 9 * mib, "empty": 0} {
		p.put(t, key, content{1, size}, create)
		for _, again := range []int64{0, 100, 9 * mib} {
			src := newSource(content{2, again})
			_, err := p.storage.Put(t.Context(), key, src, create)
			fails(t, err, fs.ErrExist, "creating "+key+" again")
			if src.closed {
				t.Errorf("creating %s again closed the source", key)
			}
		}
		p.has(t, key, content{1, size})
	}
	p.holds(t, "small", "folder/small", "large", "empty")
}

// testCreateOnceMore: an upload that is repeated, because its answer was lost, is no other
// upload of the name where the place lets that be known.
func testCreateOnceMore(t *testing.T, p *place) {
	opts := storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly, ID: "FIRST"}
	for key, size := range map[string]int64{"empty": 0, "small": 100, "large": 9 * mib} {
		c := content{1, size}
		first := p.put(t, key, c, opts)
		again, err := p.storage.Put(t.Context(), key, newSource(c), opts)
		if p.storage.Features().Repeat {
			succeeds(t, err, "repeating an upload")
			sameInfo(t, "repeating an upload", again, first)
		} else {
			fails(t, err, fs.ErrExist, "repeating an upload")
		}
		other := opts
		other.ID = "SECOND"
		_, err = p.storage.Put(t.Context(), key, newSource(c), other)
		fails(t, err, fs.ErrExist, "another upload of the name")
		p.has(t, key, c)
	}
	p.holds(t, "empty", "small", "large")
}

func testCreateRace(t *testing.T, p *place) {
	race := func(key string, n int, size int64) {
		p.raceToCreate(t, key, n, size, true, p.storage)
	}
	race("small", 16, 100)
	race("new/folders/small", 16, 100)
	race("middle", 4, 300*kib)
	race("large", 2, 9*mib)
	p.holds(t, "small", "new/folders/small", "middle", "large")
}

func testCreateRaceOfTwo(t *testing.T, p *place) {
	other := p.another(t)
	if other == nil {
		t.Skip("the harness cannot open a second driver")
	}
	one := p.storage.Features().Create == storagedrivers.Atomic
	race := func(key string, n int, size int64) {
		p.raceToCreate(t, key, n, size, one, p.storage, other)
	}
	race("small", 16, 100)
	race("new/folders/small", 16, 100)
	race("middle", 4, 300*kib)
	race("large", 2, 9*mib)
	p.holds(t, "small", "new/folders/small", "middle", "large")
}

// raceToCreate lets n goroutines create key at once: all but the winners must be told
// that it exists, and what is there must be a winner's, whole. Even the best effort has
// one winner within a process.
func (p *place) raceToCreate(t *testing.T, key string, n int, size int64, one bool, over ...*storagedrivers.Storage) {
	t.Helper()
	errs := make([]error, n)
	atOnce(n, func(i int) {
		c := content{uint64(i), size}
		_, errs[i] = over[i%len(over)].Put(t.Context(), key, newSource(c), create)
	})
	p.oneWon(t, key, errs, one)
}

// oneWon asserts the outcome of a race to create key, in which the i-th put content i.
func (p *place) oneWon(t *testing.T, key string, errs []error, one bool) {
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
	b, err := io.ReadAll(p.open(t, key))
	if err != nil {
		t.Fatalf("reading %q: %v", key, err)
	}
	c, err := identify(b)
	if err != nil || !winners[c.seed] {
		t.Errorf("%q holds what %d put, of winners %v: %v", key, c.seed, winners, err)
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
