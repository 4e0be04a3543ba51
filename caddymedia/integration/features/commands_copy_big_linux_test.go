package features_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

const (
	bigKey      = "file/content/12/big.bin" // a little before the item at which a copy is killed
	bigParallel = 4
	// copyMemory is the largest memory of a copy, the program itself included.
	copyMemory = 200 << 20
)

// TestCopyOfMuchInLittleMemory copies many small items and a large one from a folder to S3 and from
// there to SFTP. Each copy is killed on its way and run again. Then the alias is switched, and its
// addresses must answer as before. MEDIA_TEST_ITEMS sets the number of items, and MEDIA_TEST_MIB the
// size of the large one in MiB.
func TestCopyOfMuchInLittleMemory(t *testing.T) {
	if testing.Short() || drivertest.RaceDetector {
		t.Skip("it moves some gibibytes")
	}
	items, size := site.Number(t, "MEDIA_TEST_ITEMS", 1000), int64(site.Number(t, "MEDIA_TEST_MIB", 512))<<20
	s3, sftp := site.StartS3(t), site.StartSFTP(t)
	c := site.NewChild(t)
	needSpace(t, c.Home, 3*size)
	storage := func(name, driver string) string { return "storage " + name + " {\n" + driver + "\n}\n" }
	media := "tokens memory\n" +
		storage("local", "driver local $ROOT") + storage("s3", s3.Driver(s3.Address, "media", "")) +
		storage("sftp", sftp.Driver(sftp.Address, "media", "")) +
		"file_alias content {\nstorage local\n}\n"
	putItems(t, c.Root, items, func(i int) int { return 1 + i%3000 })
	putBig(t, filepath.Join(c.Root, bigKey), size)
	c.Start(media)
	before := answers(t, c, 250)

	for _, step := range []struct{ from, to string }{{"local", "s3"}, {"s3", "sftp"}} {
		copyMuch(t, c, step.from, step.to, int64(items))
		switchAlias(t, c, step.to, before)
	}
	mustBeSameFiles(t, c.Root, filepath.Join(sftp.Folder, "media"))
}

// needSpace skips a test if the disk of a folder is too small.
func needSpace(t *testing.T, folder string, space int64) {
	t.Helper()
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil || int64(disk.Bavail)*disk.Bsize < space+(1<<30) {
		site.Skip(t, "less than %d bytes are free for temporary files (%v)", space, err)
	}
}

// putBig writes a sparse file, so that it needs little space.
func putBig(t *testing.T, path string, size int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const piece = 1 << 20
	for i, offset := range []int64{0, size / 3, size / 2, size - piece} {
		if _, err := file.WriteAt(sample.Described(uint64(i), piece), offset); err != nil {
			t.Fatal(err)
		}
	}
}

// copyMuch copies everything, killed after a quarter and resumed, and checks the reports.
func copyMuch(t *testing.T, c *site.Child, from, to string, items int64) {
	t.Helper()
	args := []string{"copy", from, to, "--address", c.Admin, "--json", "--parallel", fmt.Sprint(bigParallel)}
	copied := func() (n int64) {
		return report(t, c.Media("copy", from, to, "--dry-run", "--json", "--address", c.Admin)).Present.Items
	}
	first := c.Begin(args...)
	if !first.KillWhen(func() bool { return copied() >= items/4 }) {
		t.Fatalf("it was done before it was killed\n%s\n%s", first.Out.String(), first.Err.String())
	}
	known := copied()

	second := c.Begin(args...)
	got := report(t, second.Wait().Must(t))
	if got.Present.Items < known || got.Failed.Items != 0 || got.Present.Items+got.Copied.Items != items+1 || !got.Complete {
		t.Errorf("%s to %s: %d were in the destination, then %+v", from, to, known, got)
	}
	third := report(t, c.Media(args...).Must(t))
	if third.Present.Items != items+1 || third.Present.Bytes != got.Present.Bytes+got.Copied.Bytes {
		t.Errorf("%s to %s, again: %+v", from, to, third)
	}
	for _, run := range []*site.Command{first, second} {
		if run.Peak > copyMemory {
			t.Errorf("%s to %s took %d MiB of memory", from, to, run.Peak>>20)
		}
	}
	t.Logf("%s to %s: %d copied until it was killed, then %d copied, %d already there in %.1f s; again in %.1f s; "+
		"at most %d and %d MiB of memory",
		from, to, known, got.Copied.Items, got.Present.Items, got.Seconds, third.Seconds, first.Peak>>20, second.Peak>>20)
}

// mustBeSameFiles is mustBeSame for files that do not fit in memory.
func mustBeSameFiles(t *testing.T, from, to string) {
	t.Helper()
	names, others := site.FilesBelow(t, from), slices.DeleteFunc(site.FilesBelow(t, to), isHidden)
	if len(names) != len(others) {
		t.Fatalf("there are %d files, want %d", len(others), len(names))
	}
	for i, name := range names {
		if others[i] != name || sumOfFile(t, filepath.Join(from, name)) != sumOfFile(t, filepath.Join(to, name)) {
			t.Errorf("%s and %s differ", name, others[i])
		}
	}
}

func sumOfFile(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		t.Fatal(err)
	}
	return string(sum.Sum(nil))
}
