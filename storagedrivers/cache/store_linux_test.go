package cache

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk: without space or inodes, objects come from the backend, and the cache is filled again
// when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	for name, mount := range map[string]string{"bytes": "size=2m", "inodes": "size=64m,nr_inodes=6"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, mount); err != nil {
				t.Skipf("mounting: %v", err)
			}
			t.Cleanup(func() { is(t, syscall.Unmount(folder, 0), nil) })
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
			is(t, s.Empty(), nil)
			s.lastAttempt = time.Time{}
			has(t, d, "1", all, content[1])
			b.calls()
			has(t, d, "1", all, content[1])
			b.did(t, "with room again", 0, 1, 0)
			is(t, s.Close(), nil)
		})
	}
}
