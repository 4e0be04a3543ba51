// Package drivertest is the conformance suite of storage drivers: it tests exactly the rules in the
// comments of package storagedrivers, and the Features of a driver select the guarantees that are
// asserted. It does not test the specifics of a driver, such as its errors and its configuration.
// Begin with [Run], which a driver's own tests call once for every server and setting that it must
// support.
//
// The package is stable: a new version may add tests of the contract.
package drivertest

import (
	"slices"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// Harness is the access to a driver under test. The subtests run in parallel. New is called once in
// each of them, and the other functions with the same t after it, from the goroutine of the test.
type Harness struct {
	// New returns a driver on an empty backend. The suite closes it.
	New func(t *testing.T) storagedrivers.Driver
	// Another returns another driver on the backend that New created for t, like that of another
	// process. The suite closes it. Nil if not supported.
	Another func(t *testing.T) storagedrivers.Driver
	// Leftovers lists the files or objects, without folders, of the backend that New created for t,
	// including hidden and temporary ones. They are listed by their keys, or by any name without
	// one. Nil if not supported.
	Leftovers func(t *testing.T) []string
	// Address is the host and port of the server of the drivers. Empty if there is none.
	Address string
	// Through is Another, but its driver reaches the server at another address, a host and port, and does
	// not wait longer than timeout for it to answer. It is set together with Address.
	Through func(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver
	// AbortUpload starts an upload of key, large enough to come in parts, on the backend that New
	// created for t. It aborts it as if its process had died, so that leftovers remain. Nil if not
	// supported; with Through the suite does it.
	AbortUpload func(t *testing.T, key string)
	// Later is Another with a clock that is two days ahead. Nil if nothing is swept.
	Later func(t *testing.T) storagedrivers.Driver
	// Kill ends a driver from New or Another like the end of its process. It is set together with
	// Another, for a [storagedrivers.Stager].
	Kill func(t *testing.T, d storagedrivers.Driver)
	// MaxMemory is the number of bytes that storing and reading 100 MiB may use. 0 means 32 MiB.
	MaxMemory uint64
	// NoMemoryTest skips that measurement, for a server in the process of the test, whose memory
	// would be measured too.
	NoMemoryTest bool
	// OtherSetting skips the second run with a key prefix, and all with -short, for another setting of a
	// driver that passes the whole suite elsewhere.
	OtherSetting bool
	// OtherServer skips that run too, and all under the race detector, for another server of such a
	// driver: its goroutines are the same.
	OtherServer bool
	// CoarseTags allows two generations of one size to share their modification time, for drivers
	// without entity tags. A driver that needs it should be fixed.
	CoarseTags bool
	// IgnoresConditions skips the tests of conditions, for a test server that ignores them although the
	// real service compares.
	IgnoresConditions bool
	// InexactConditions skips the race for one, for a test server that compares, but does something else
	// before the change, although the real service is exact.
	InexactConditions bool
	// EarlierTags allows readers beside a writer to get the entity tag of an earlier generation with
	// the bytes of a later one, for servers that read the tag first. Clients then only fetch the
	// object once more.
	EarlierTags bool
}

// Run tests a driver, with plain keys, and then with a key prefix, unless with -short or under the race
// detector: data races do not depend on keys. A test that calls Run must not run in parallel to
// others, because it measures memory.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.OtherServer && RaceDetector {
		t.Skip("the race detector watches this driver with its first server")
	}
	if h.OtherSetting && testing.Short() {
		t.Skip("a short run tests one setting of a driver")
	}
	if !h.NoMemoryTest {
		t.Run("memory", func(t *testing.T) { testMemory(t, h.newEnv(t, "")) })
	}
	t.Run("plain", func(t *testing.T) { runAll(t, h, "") })
	if !h.OtherSetting && !h.OtherServer && !testing.Short() && !RaceDetector {
		t.Run("prefix", func(t *testing.T) { runAll(t, h, "some/prefix/") })
	}
}

// A subtest runs on its own backend.
type subtest struct {
	name string
	run  func(t *testing.T, e *env)
}

var subtests = []subtest{
	{"put and open", testRoundTrip},
	{"create twice", testCreateTwice},
	{"repeat create", testRepeatCreate},
	{"create race", testCreateRace},
	{"overwrite", testOverwrite},
	{"change while reading", testChangeWhileReading},
	{"dated", testDated},
	{"overwriters and readers", testOverwritersAndReaders},
	{"reader beside writer", testReaderBesideWriter},
	{"many goroutines", testManyGoroutines},
	{"slow readers", testSlowReaders},
	{"range", testRange},
	{"stat", testStat},
	{"etag", testETag},
	{"odd names", testOddNames},
	{"invalid keys", testInvalidKeys},
	{"key below an object", testKeyBelowObject},
	{"key of a folder", testKeyOfFolder},
	{"key of an empty folder", testKeyOfEmptyFolder},
	{"missing", testMissing},
	{"delete", testDelete},
	{"list", testList},
	{"list pages", testListPages},
	{"list one level", testListLevel},
	{"list one level by pages", testListLevelPages},
	{"list while deleting", testListWhileDeleting},
	{"list prefixes of no key", testListOddPrefixes},
	{"all", testAll},
	{"source error", testSourceError},
	{"cancel while storing", testCancelWhileStoring},
	{"cancel while reading", testCancelWhileReading},
	{"cancelled before", testCancelledBefore},
	{"source of unknown size", testStream},
	{"stage", testStage},
	{"stage commit under another key", testStageOtherKey},
	{"stage overwrite", testStageOverwrite},
	{"stage without commit", testStageWithoutCommit},
	{"stage many", testStageMany},
	{"stage commit race", testStageCommitRace},
	{"commit", testCommit},
	{"commit of taken keys", testCommitTaken},
	{"commit of taken keys with followers", testCommitFollowersTaken},
	{"commit refused", testCommitRefused},
	{"commit cancelled", testCommitCancelled},
	{"commit race", testCommitRace},
	{"commit crash", testCommitCrash},
	{"compare", testCompare},
	{"compare race", testCompareRace},
	{"copy", testCopy},
	{"copy of a changed object", testCopyChanged},
	{"copy cancelled", testCopyCancelled},
	{"copy again", testCopyAgain},
	{"copy race", testCopyRace},
	{"append", testAppend},
	{"append refused", testAppendRefused},
	{"adopt", testAdopt},
	{"grow", testGrow},
	{"grow in many parts", testGrowMany},
	{"grow by whole parts", testGrowWhole},
	{"grow refused", testGrowRefused},
	{"grow overtaken", testGrowOvertaken},
	{"grow race", testGrowRace},
	{"grow after close", testGrowClose},
	{"stage grown", testStageGrown},
	{"stage grown again", testStageGrownAgain},
	{"stage grown elsewhere", testStageGrownElsewhere},
	{"stage grown together", testStageGrownTogether},
	{"stage grown crash", testStageGrownCrash},
	{"seeking readers", testSeekingReaders},
	{"open seeker", testOpenSeeker},
	{"open seeker of replaced", testOpenSeekerOfReplaced},
	{"serve content", testServeContent},
	{"sweep", testSweep},
	{"sweep beside uploads", testSweepBesideUploads},
	{"space", testSpace},
	{"host that is gone", testGoneHost},
	{"silent on the way", testSilentOnTheWay},
	{"cancelled while silent", testCancelledWhileSilent},
	{"cut while storing", testCutWhileStoring},
	{"cut while reading", testCutWhileReading},
	{"check", testCheck},
	{"close", testClose},
}

func runAll(t *testing.T, h Harness, prefix string) {
	for _, tt := range subtests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(t, h.newEnv(t, prefix))
		})
	}
}

// env is the environment of a subtest.
type env struct {
	t       *testing.T // of the subtest, the key of the backend in the harness
	harness Harness
	prefix  string
	bare    storagedrivers.Driver
	driver  storagedrivers.Driver // behind the prefix
	storage *storagedrivers.Storage
}

func (h Harness) newEnv(t *testing.T, prefix string) *env {
	t.Helper()
	bare := h.New(t)
	e := &env{t: t, harness: h, prefix: prefix, bare: bare, driver: behind(bare, prefix)}
	succeeds(t, e.driver.Check(t.Context()), "the first check") // the features are known from here on
	e.storage = storagedrivers.New("test", e.driver, storagedrivers.Options{})
	t.Cleanup(func() { closed(t, e.storage) })
	return e
}

// another returns a storage on the same backend, like that of another process, or nil.
func (e *env) another(t *testing.T) *storagedrivers.Storage {
	t.Helper()
	if e.harness.Another == nil {
		return nil
	}
	driver := behind(e.harness.Another(e.t), e.prefix)
	succeeds(t, driver.Check(t.Context()), "the first check")
	s := storagedrivers.New("another", driver, storagedrivers.Options{})
	t.Cleanup(func() { closed(t, s) })
	return s
}

// keys returns all keys after the prefix.
func (e *env) keys(t *testing.T) []string {
	t.Helper()
	var keys []string
	for info, err := range e.storage.All(t.Context(), "") {
		test.Must(t, err, "listing")
		keys = append(keys, info.Key)
	}
	return keys
}

// holds asserts that the backend contains exactly these keys, and nothing hidden.
func (e *env) holds(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	e.listed(t, want...)
	if e.harness.Leftovers == nil {
		return
	}
	names := e.harness.Leftovers(e.t)
	slices.Sort(names)
	full := make([]string, len(want))
	for i, key := range want {
		full[i] = e.prefix + key
	}
	if !slices.Equal(names, full) {
		t.Errorf("the backend has %q, want only %q", names, full)
	}
}

// listed asserts that exactly these keys are listed.
func (e *env) listed(t *testing.T, want ...string) {
	t.Helper()
	if got := e.keys(t); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}
