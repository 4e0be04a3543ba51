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
	// Through is Another, but its driver reaches the server at another address, a host and port, and
	// does not wait longer than timeout for it to answer. It is set together with Address.
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
	// OtherSetting skips the second run with a key prefix, and all with -short, for another setting of
	// a driver that passes the whole suite elsewhere.
	OtherSetting bool
	// OtherServer skips that run too, and all under the race detector, for another server of such a
	// driver: its goroutines are the same.
	OtherServer bool
	// CoarseTags allows two generations of one size to share their modification time, for drivers
	// without entity tags. A driver that needs it should be fixed.
	CoarseTags bool
	// IgnoresConditions skips the tests of conditions, for a test server that ignores them although
	// the real service compares.
	IgnoresConditions bool
	// InexactConditions skips the race for one, for a test server that compares, but does something
	// else before the change, although the real service is exact.
	InexactConditions bool
	// EarlierTags allows readers beside a writer to get the entity tag of an earlier generation with
	// the bytes of a later one, for servers that read the tag first. Clients then only fetch the
	// object once more.
	EarlierTags bool
}

// Run tests a driver, with plain keys, and then with a key prefix, unless with -short or under the
// race detector: data races do not depend on keys. A test that calls Run must not run in parallel
// to others, because it measures memory.
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

// A subtest runs on its own backend. The rule is what it asserts, in the words of a comment of
// package storagedrivers.
type subtest struct {
	name string
	run  func(t *testing.T, e *env)
	rule string
}

var subtests = []subtest{
	{"put and open", testRoundTrip, "Put stores all of r under key, or nothing."},
	{"create twice", testCreateTwice, "With [CreateOnly] an existing key is fs.ErrExist"},
	{"repeat create", testRepeatCreate, "A driver whose replies may get lost should therefore recognise its own object."},
	{"create race", testCreateRace, "if several callers put one new key with [CreateOnly], exactly one succeeds."},
	{"overwrite", testOverwrite, "Overwrite replaces an existing object as a whole."},
	{"change while reading", testChangeWhileReading, "A reader stays on the object that it was opened on, even if that is replaced or deleted"},
	{"dated", testDated, "an object that this driver stores has another Size or ModTime than each one that it has replaced or deleted under the key."},
	{"overwriters and readers", testOverwritersAndReaders, "no reader gets a part of one, or bytes of two generations."},
	{"reader beside writer", testReaderBesideWriter, "a reader during an [Overwrite] finds the old object or the new one, never neither, and keeps it to the end."},
	{"many goroutines", testManyGoroutines, "All methods are safe for concurrent use and honour ctx."},
	{"slow readers", testSlowReaders, "A driver with a bounded number of connections must share them among the owners"},
	{"range", testRange, "A range that starts at or past the end is ErrInvalidRange"},
	{"stat", testStat, "Stat returns the Info of an object."},
	{"etag", testETag, "generations of one key that differ in a byte never share it."},
	{"odd names", testOddNames, "A valid key consists of segments joined by single slashes, in valid UTF-8"},
	{"invalid keys", testInvalidKeys, "ValidKey returns an error that wraps ErrInvalidKey if key may not name an object."},
	{"key below an object", testKeyBelowObject, "if an object has the name of a folder of key, the error is [ErrInvalidKey]."},
	{"key of a folder", testKeyOfFolder, "A backend with folders may hold no object beside a folder of its name."},
	{"key of an empty folder", testKeyOfEmptyFolder, "Folders without objects, such as those that deletions leave, make room for key."},
	{"missing", testMissing, "A missing key is fs.ErrNotExist."},
	{"delete", testDelete, "Delete removes an object."},
	{"list", testList, "List returns the objects whose keys begin with opts.Prefix, or one level of them, in the byte order of their keys."},
	{"list pages", testListPages, "Next is the cursor of the next page; empty on the last."},
	{"list one level", testListLevel, "objects whose keys have a slash after the prefix appear as [Page.Folders]."},
	{"list one level by pages", testListLevelPages, "All objects and folders of a page sort before those of the next."},
	{"list while deleting", testListWhileDeleting, "It stays valid if objects are stored or deleted meanwhile."},
	{"list prefixes of no key", testListOddPrefixes, "A driver gets only prefixes that valid keys may have."},
	{"all", testAll, "All returns every object whose key begins with prefix, at any depth, in the byte order of the keys."},
	{"source error", testSourceError, "An error of r is returned (errors.Is), including io.ErrUnexpectedEOF."},
	{"cancel while storing", testCancelWhileStoring, "After any error, including cancellation, an earlier object is intact"},
	{"cancel while reading", testCancelWhileReading, "ctx governs the reader until it is closed."},
	{"cancelled before", testCancelledBefore, "All methods are safe for concurrent use and honour ctx."},
	{"source of unknown size", testStream, "Put also takes a source whose size is not known yet."},
	{"stage", testStage, "Stage returns a new object without a name."},
	{"stage commit under another key", testStageOtherKey, "the staged objects may be committed under other keys."},
	{"stage overwrite", testStageOverwrite, "It is written first, then read and sought, then committed by [Storage.Commit], then closed."},
	{"stage without commit", testStageWithoutCommit, "Close discards uncommitted bytes."},
	{"stage many", testStageMany, "can stage bytes in the backend, so that committing them moves no data"},
	{"stage commit race", testStageCommitRace, "if several callers put one new key with [CreateOnly], exactly one succeeds."},
	{"commit", testCommit, "Commit makes all changes or none, and returns the Infos of the stored objects in the order of the changes"},
	{"commit of taken keys", testCommitTaken, "After an *ExistsError nothing has changed"},
	{"commit of taken keys with followers", testCommitFollowersTaken, "The keys of objects that follow a taken one are not looked at, because they change with it."},
	{"commit refused", testCommitRefused, "No key appears twice, and a staged object is one of this driver."},
	{"commit cancelled", testCommitCancelled, "Commit makes all changes or none, as [Storage.Commit]."},
	{"commit race", testCommitRace, "It leaves an object that another writer stores under one of the keys while it undoes a failed Commit."},
	{"commit crash", testCommitCrash, "If the process dies meanwhile, the driver undoes or completes the changes when it is next used"},
	{"compare", testCompare, "If the key has another object, or none, the error is [ErrChanged], and nothing is stored."},
	{"compare race", testCompareRace, "between the comparison and the change no other writer changes the object."},
	{"copy", testCopy, "StageCopy returns a staged object with the bytes of source"},
	{"copy of a changed object", testCopyChanged, "If source is missing or is another generation by now, the error is [ErrChanged]."},
	{"copy cancelled", testCopyCancelled, "After any error, including cancellation, an earlier object is intact"},
	{"copy again", testCopyAgain, "If a reply was lost and the key then exists, the driver recognises its own object by the ID."},
	{"copy race", testCopyRace, "if several callers put one new key with [CreateOnly], exactly one succeeds."},
	{"keep", testKeep, "Keeps is true if the object is the one that the next change replaces or removes"},
	{"keep apart", testKeepApart, "An object is visible whole or not at all"},
	{"keep of a changed object", testKeepChanged, "If source is missing or is another generation, the error of StageKept or Commit is [ErrChanged]."},
	{"rename", testRename, "Rename gives source, the Info of an object of this driver, the key to, and takes it away from its own."},
	{"link", testLink, "what replaces or removes one of them leaves the other as it is."},
	{"append", testAppend, "A growing object is visible, with the Info of the moment."},
	{"append refused", testAppendRefused, "if another writer has appended, the call fails with ErrChanged and does nothing."},
	{"adopt", testAdopt, "Nothing is appended to it before the staged data is closed."},
	{"grow", testGrow, "Any process that uses the backend can continue them."},
	{"grow in many parts", testGrowMany, "they are objects under the key, a dot, and the offset in 16 digits."},
	{"grow by whole parts", testGrowWhole, "Whole means that no byte is stored before a Flush."},
	{"grow refused", testGrowRefused, "Append returns a writer at the end of the object. The error is [ErrChanged] if that has moved."},
	{"grow overtaken", testGrowOvertaken, "If another process has added bytes, the error of its methods is [ErrChanged]."},
	{"grow race", testGrowRace, "Of several writers at one size one succeeds."},
	{"grow after close", testGrowClose, "It keeps the storage open until it, or the staged data that it has become, is closed."},
	{"stage grown", testStageGrown, "StageGrown returns the bytes of growing objects, one after the other, as staged data of s"},
	{"stage grown again", testStageGrownAgain, "nothing is added to it before the staged data is closed."},
	{"stage grown elsewhere", testStageGrownElsewhere, "Otherwise they are copied to the staged data that stage returns, or Stage if it is nil."},
	{"stage grown together", testStageGrownTogether, "They are not moved if there is one object only, of s, which was appended to"},
	{"stage grown crash", testStageGrownCrash, "The object stays under its own key until the caller deletes it, whatever happens to the staged data."},
	{"seeking readers", testSeekingReaders, "readers of the zero [Range] implement io.Seeker and io.ReaderAt, and opening one transfers nothing."},
	{"open seeker", testOpenSeeker, "OpenSeeker opens an object for reading from any offset."},
	{"open seeker of replaced", testOpenSeekerOfReplaced, "Read never returns bytes of another generation."},
	{"serve content", testServeContent, "Object reads an object from any offset, as an io.ReadSeeker for http.ServeContent."},
	{"sweep", testSweep, "Sweep looks for leftovers of the age in opts, and removes them unless opts select a dry run."},
	{"sweep beside uploads", testSweepBesideUploads, "Data of a running upload, in this process or another, is not a leftover, whatever the age in opts."},
	{"space", testSpace, "Free is the number of bytes that the user of the driver may still write, from 0 to Total."},
	{"host that is gone", testGoneHost, "ErrUnavailable means that a backend cannot be reached now: network, time-out, throttling."},
	{"silent on the way", testSilentOnTheWay, "For an upload, silence starts at the last Read of its source."},
	{"cancelled while silent", testCancelledWhileSilent, "All methods are safe for concurrent use and honour ctx."},
	{"cut while storing", testCutWhileStoring, "An object is visible whole or not at all"},
	{"cut while reading", testCutWhileReading, "no reader gets a part of one, or bytes of two generations."},
	{"check", testCheck, "Check connects, authenticates and finds the root, which it creates if possible."},
	{"close", testClose, "the driver stays open until the last staged or opened object is closed."},
}

func runAll(t *testing.T, h Harness, prefix string) {
	for _, tt := range subtests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Log("the rule: " + tt.rule)
				}
			})
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
