package storagecopy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

func openJournal(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := OpenJournal(path, "a copy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func item(i int) storagedrivers.Info {
	return storagedrivers.Info{Key: fmt.Sprintf("item-%06d", i), Size: int64(i), ETag: fmt.Sprintf("%q", fmt.Sprint(i))}
}

// TestJournalInAnyOrder: the lines need not be sorted, and only a part of them is in memory.
func TestJournalInAnyOrder(t *testing.T) {
	t.Parallel()
	const items = 5 * blockLines
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	order := make([]int, items)
	for i := range order { // nearly in order, as of items on their way at the same time
		order[i] = i
		other := rand.IntN(50)
		if i >= other {
			order[i], order[i-other] = order[i-other], order[i]
		}
	}
	order[0], order[items-1] = order[items-1], order[0]
	for _, i := range order {
		if i%3 == 0 {
			continue
		}
		if err := j.append(recordOf(item(i), item(i), "sum")); err != nil {
			t.Fatal(err)
		}
	}
	j = openJournal(t, path)
	for i := range items {
		known, err := j.knows(item(i))
		if err != nil || known != (i%3 != 0) {
			t.Fatalf("item %d is known: %v, error %v", i, known, err)
		}
		if len(j.near) > 4 {
			t.Fatalf("%d blocks are in memory", len(j.near))
		}
	}
}

// TestJournalOfGenerations: the last line about an item counts.
func TestJournalOfGenerations(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	first, second := item(1), item(1)
	second.ETag = `"second"`
	j := openJournal(t, path)
	for _, generation := range []storagedrivers.Info{first, second} {
		if err := j.append(recordOf(generation, generation, "sum")); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		listed storagedrivers.Info
		want   bool
	}{{first, false}, {second, true}} {
		if known, err := openJournal(t, path).knows(test.listed); err != nil || known != test.want {
			t.Errorf("%+v is known: %v, error %v", test.listed, known, err)
		}
	}
}

// TestJournalWithoutETags: without ETags the modification time in the list distinguishes
// generations.
func TestJournalWithoutETags(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	listed := storagedrivers.Info{Key: "a", Size: 1, ModTime: time.Unix(100, 0)}
	opened := listed
	opened.ModTime = time.Unix(100, 5)
	if err := openJournal(t, path).append(recordOf(listed, opened, "sum")); err != nil {
		t.Fatal(err)
	}
	if known, err := openJournal(t, path).knows(listed); err != nil || !known {
		t.Errorf("it is known: %v, error %v", known, err)
	}
	listed.ModTime = time.Unix(200, 0)
	if known, err := openJournal(t, path).knows(listed); err != nil || known {
		t.Errorf("a later one is known: %v, error %v", known, err)
	}
}

// TestDamagedJournal: a line that was cut off or damaged is ignored.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	j := openJournal(t, path)
	for i := range 4 {
		if err := j.append(recordOf(item(i), item(i), "sum")); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(raw), `"item-000001"`, `item-000001"`, 1)
	if err := os.WriteFile(path, []byte(text[:len(text)-5]), 0o600); err != nil {
		t.Fatal(err)
	}
	j = openJournal(t, path)
	if known, err := j.knows(item(0)); err != nil || !known {
		t.Errorf("the first item is known: %v, error %v", known, err)
	}
	if err := j.append(recordOf(item(9), item(9), "sum")); err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]bool{0: true, 1: false, 2: true, 3: false, 9: true} {
		if known, err := openJournal(t, path).knows(item(i)); err != nil || known != want {
			t.Errorf("item %d is known: %v, error %v", i, known, err)
		}
	}
	if _, err := OpenJournal(path, "another copy"); !errors.Is(err, errForeign) {
		t.Errorf("the journal of another copy is taken: %v", err)
	}
	const other = "no journal"
	if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = OpenJournal(path, "a copy")
	if b, _ := os.ReadFile(path); !errors.Is(err, errForeign) || string(b) != other {
		t.Errorf("another file is taken: %v, and holds %q now", err, b)
	}
}
