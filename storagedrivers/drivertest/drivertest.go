// Package drivertest is the conformance suite of storage drivers. A rule that is not in
// a comment of package storagedrivers is not here, and the other way round; what a driver
// says in its Features decides which guarantees are asserted.
//
// A driver's own tests call [Run] once for every server and setting that it must work
// with, and otherwise test only what is its own: its errors, its configuration.
package drivertest

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// Harness says how to get at a driver under test. The subtests run in parallel; New is
// called once in each of them, and the other functions with the same t after it, from
// the test's own goroutine.
type Harness struct {
	// New makes a driver on an empty place. The suite closes it.
	New func(t *testing.T) storagedrivers.Driver
	// Another opens one more driver on the place that New made for t, as another process
	// would. The suite closes it. Nil where that cannot be done.
	Another func(t *testing.T) storagedrivers.Driver
	// Leftovers lists the files or objects, without folders, that the place New made for
	// t holds, hidden and temporary ones included, by their keys or, for what has none,
	// by any name. Nil where that cannot be seen.
	Leftovers func(t *testing.T) []string
	// CutOff begins an upload of key, large enough to come in parts, in the place that New made
	// for t, and cuts it off as if its process had died, so that something stays behind. Nil
	// where that cannot be done.
	CutOff func(t *testing.T, key string)
	// Later is Another with a clock that is two days ahead. It goes with CutOff.
	Later func(t *testing.T) storagedrivers.Driver
	// Die ends a driver that New or Another made as the end of its process does. It goes with
	// Another and is for a [storagedrivers.Grouper].
	Die func(t *testing.T, d storagedrivers.Driver)
	// MaxMemory is how many bytes of memory storing and reading 100 MiB may take. 0 is
	// 32 MiB.
	MaxMemory uint64
	// NoMemoryTest leaves that measurement out, for a server that runs in the process of
	// the test and would be measured too.
	NoMemoryTest bool
	// PlainKeys leaves out the second run behind a key prefix, for one more server or setting of
	// a driver that passes both elsewhere.
	PlainKeys bool
	// CoarseTags leaves out that two generations of one size never share their time of
	// modification, where the driver has no entity tag. A driver that needs it is to be fixed.
	CoarseTags bool
}

// Run tests a driver, with its keys as they are and behind a key prefix. A test that calls it must not be parallel to others: memory is measured.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if !h.NoMemoryTest {
		t.Run("memory", func(t *testing.T) { testMemory(t, h.place(t, "")) })
	}
	t.Run("plain", func(t *testing.T) { runAll(t, h, "") })
	if !h.PlainKeys {
		t.Run("prefix", func(t *testing.T) { runAll(t, h, "some/prefix/") })
	}
}

// A subtest has a place of its own.
type subtest struct {
	name string
	run  func(t *testing.T, p *place)
}

var subtests = []subtest{
	{"put and open", testRoundTrip},
	{"create twice", testCreateTwice},
	{"create once more", testCreateOnceMore},
	{"create race", testCreateRace},
	{"create race of two drivers", testCreateRaceOfTwo},
	{"overwrite", testOverwrite},
	{"overwrite while reading", testOverwriteWhileReading},
	{"delete while reading", testDeleteWhileReading},
	{"overwriters and readers", testOverwritersAndReaders},
	{"reader beside writer", testReaderBesideWriter},
	{"many goroutines", testManyGoroutines},
	{"range", testRange},
	{"stat", testStat},
	{"etag", testETag},
	{"odd names", testOddNames},
	{"invalid keys", testInvalidKeys},
	{"key below an object", testKeyBelowObject},
	{"key of a folder", testKeyOfFolder},
	{"missing", testMissing},
	{"delete", testDelete},
	{"list", testList},
	{"list pages", testListPages},
	{"list one level", testListLevel},
	{"list one level by pages", testListLevelPages},
	{"list while deleting", testListWhileDeleting},
	{"list prefixes of no key", testListOddPrefixes},
	{"all", testAll},
	{"source error on create", testSourceErrorOnCreate},
	{"source error on overwrite", testSourceErrorOnOverwrite},
	{"cancel while storing", testCancelWhileStoring},
	{"cancel while reading", testCancelWhileReading},
	{"cancelled before", testCancelledBefore},
	{"stage", testStage},
	{"stage commit under another key", testStageOtherKey},
	{"stage overwrite", testStageOverwrite},
	{"stage without commit", testStageWithoutCommit},
	{"stage commit cancelled", testStageCommitCancelled},
	{"stage many", testStageMany},
	{"stage commit race", testStageCommitRace},
	{"revert create", testRevertCreate},
	{"revert overwrite", testRevertOverwrite},
	{"revert leaves others", testRevertLeavesOthers},
	{"group", testGroup},
	{"group of one", testGroupOfOne},
	{"group of taken keys", testGroupOfTakenKeys},
	{"group rolled back", testGroupRolledBack},
	{"group of removals", testGroupOfRemovals},
	{"group not prepared", testGroupNotPrepared},
	{"group crash", testGroupCrash},
	{"seeking readers", testSeekingReaders},
	{"open seeker", testOpenSeeker},
	{"open seeker of replaced", testOpenSeekerOfReplaced},
	{"serve content", testServeContent},
	{"sweep", testSweep},
	{"sweep beside uploads", testSweepBesideUploads},
	{"check", testCheck},
	{"close", testClose},
}

func runAll(t *testing.T, h Harness, prefix string) {
	for _, tt := range subtests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, h.place(t, prefix))
		})
	}
}

// place is where a subtest works.
type place struct {
	t       *testing.T // the subtest's, which the harness knows the place by
	harness Harness
	prefix  string
	bare    storagedrivers.Driver
	driver  storagedrivers.Driver // behind the prefix
	storage *storagedrivers.Storage
}

func (h Harness) place(t *testing.T, prefix string) *place {
	t.Helper()
	bare := h.New(t)
	p := &place{t: t, harness: h, prefix: prefix, bare: bare, driver: behind(bare, prefix)}
	succeeds(t, p.driver.Check(t.Context()), "the first check") // the features are known from here on
	p.storage = storagedrivers.New("test", p.driver, storagedrivers.Options{})
	t.Cleanup(func() { closed(t, p.storage) })
	return p
}

// another gives a storage on the same place as from another process, or nil.
func (p *place) another(t *testing.T) *storagedrivers.Storage {
	t.Helper()
	if p.harness.Another == nil {
		return nil
	}
	driver := behind(p.harness.Another(p.t), p.prefix)
	succeeds(t, driver.Check(t.Context()), "the first check")
	s := storagedrivers.New("another", driver, storagedrivers.Options{})
	t.Cleanup(func() { closed(t, s) })
	return s
}

// keys lists everything behind the prefix.
func (p *place) keys(t *testing.T) []string {
	t.Helper()
	var keys []string
	for info, err := range p.storage.All(t.Context(), "") {
		if err != nil {
			t.Fatalf("listing: %v", err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// holds asserts that exactly these keys are in the place, and nothing hidden.
func (p *place) holds(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := p.keys(t); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if p.harness.Leftovers == nil {
		return
	}
	names := p.harness.Leftovers(p.t)
	slices.Sort(names)
	full := make([]string, len(want))
	for i, key := range want {
		full[i] = p.prefix + key
	}
	if !slices.Equal(names, full) {
		t.Errorf("the place has %q, want only %q", names, full)
	}
}
