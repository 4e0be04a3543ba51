package cache

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestFullDisk: without space or inodes, objects come from the backend, and the cache is filled
// again when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	for name, mount := range map[string]string{"bytes": "size=2m", "inodes": "size=64m,nr_inodes=40"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, mount); err != nil {
				t.Skipf("mounting: %v", err)
			}
			t.Cleanup(func() { test.Is(t, syscall.Unmount(folder, 0), nil) })
			s, b, content := open(t, folder, 32*mib), newBackend(), map[int][]byte{}
			d := behind(t, b, s, Policy{Block: 256 * kib})
			for i := range 40 { // 40 MiB
				content[i] = random(uint64(i), mib)
				put(t, d, fmt.Sprint(i), content[i])
				has(t, d, fmt.Sprint(i), all, content[i])
			}
			if _, _, sent := b.calls(); sent != 40*mib {
				t.Errorf("the backend sent %d bytes", sent)
			}
			if s.Stats().Evicted == 0 {
				t.Error("no file made room for another one")
			}
			test.Is(t, s.Empty(), nil)
			s.lastAttempt = time.Time{}
			has(t, d, "1", all, content[1])
			b.calls()
			has(t, d, "1", all, content[1])
			b.did(t, "with room again", 0, 1, 0)
			test.Is(t, s.Close(), nil)
		})
	}
}

// TestBoundOfDisk: a disk of the largest size has room for the files at each moment, with the
// unfinished one, and with those that slow readers have open.
func TestBoundOfDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("mounting: %v", err)
	}
	t.Cleanup(func() { test.Is(t, syscall.Unmount(folder, 0), nil) })
	s := open(t, folder, 24*mib)
	var reading []*block // by readers that are slow
	for i := range 600 { // 16 times the size
		length := 1 + i*7919%(2*mib)
		if i%3 == 0 {
			length = 1 + i%5000
		}
		if !s.put(id(i%450), random(uint64(i), length)) {
			t.Fatalf("file %d is not stored", i)
		}
		if b := s.block(id(i%450), length); i%20 == 0 && b != nil {
			reading = append(reading, b)
		} else {
			b.close()
		}
	}
	var disk syscall.Statfs_t
	test.Is(t, syscall.Statfs(folder, &disk), nil)
	if free := int64(disk.Bfree) * disk.Bsize; free > 6*mib {
		t.Errorf("%d bytes are not used", free)
	}
	for _, b := range reading {
		b.close()
	}
	test.Is(t, s.Close(), nil)
}
