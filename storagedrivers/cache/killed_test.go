package cache

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
)

// childFolder is the environment variable of a child process, with the folder that it writes to.
const childFolder = "MEDIA_TEST_CACHE_FOLDER"

const childMaxSize = 16 * mib

// storeForever stores records and prints the number of each. The size of a record is [sizeOf].
func storeForever(folder string) {
	s := NewStore(Options{Folder: folder, MaxSize: childMaxSize})
	for i := 0; s.put(id(i), random(uint64(i), sizeOf(i))); i++ {
		fmt.Println(i)
	}
}

func sizeOf(i int) int { return 1 + i*7919%(300*kib) }

// TestKilled: a store whose process is killed while it writes is there for the next one, within its
// bound, and each record in it is right.
func TestKilled(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 3
	}
	program, err := os.Executable()
	test.Is(t, err, nil)
	folder := t.TempDir()
	for round := range rounds {
		child := exec.CommandContext(t.Context(), program)
		child.Env = append(os.Environ(), childFolder+"="+folder)
		out, err := child.StdoutPipe()
		test.Is(t, err, nil)
		test.Is(t, child.Start(), nil)
		time.AfterFunc(time.Duration(rand.IntN(200))*time.Millisecond, func() { _ = child.Process.Kill() })
		last := -1
		for lines := bufio.NewScanner(out); lines.Scan(); {
			last, err = strconv.Atoi(lines.Text())
			test.Is(t, err, nil)
		}
		_ = child.Wait() // it was killed

		s := NewStore(Options{Folder: folder, MaxSize: childMaxSize})
		if !s.ready() {
			t.Fatal("the folder of the killed process is not usable")
		}
		found := 0
		for i := range last + 1 {
			if got, ok := s.payload(id(i), sizeOf(i)); ok {
				found++
				if !bytes.Equal(got, random(uint64(i), sizeOf(i))) {
					t.Fatalf("round %d: record %d has other bytes", round, i)
				}
			}
		}
		if stats := s.Stats(); last >= 0 && found == 0 || size(t, folder) > childMaxSize || stats.Damaged > 1 {
			t.Errorf("round %d: %d of %d records, %+v", round, found, last+1, stats)
		}
		test.Is(t, s.Close(), nil)
	}
}
