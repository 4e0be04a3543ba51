package drivertest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

const defaultMaxMemory = 32 * mib

// testMemory stages 100 MiB of unknown length, commits and reads them, and measures the live heap
// and, on Linux, the resident memory. The race detector multiplies both, so that nothing is measured
// under it.
func testMemory(t *testing.T, e *env) {
	if RaceDetector || testing.Short() {
		t.Skip("needs some seconds, and no race detector")
	}
	c := content{1, 100 * mib}
	limit := e.harness.MaxMemory
	if limit == 0 {
		limit = defaultMaxMemory
	}
	e.put(t, "warm up", content{2, 9 * mib}, create) // connections and pools
	e.has(t, "warm up", content{2, 9 * mib})
	heap, resident := watch(func() {
		staged := e.stage(t, c)
		e.commit(t, staged, "object", c, create)
		closed(t, staged)
		e.has(t, "object", c)
	})
	t.Logf("the live heap grew by %d KiB, the process by %d KiB", heap/kib, resident/kib)
	if heap > limit {
		t.Errorf("the live heap grew by %d bytes, want at most %d", heap, limit)
	}
	// Free pages are returned late.
	if want := 2 * limit; resident > want {
		t.Errorf("the process grew by %d bytes, want at most %d", resident, want)
	}
	e.holds(t, "warm up", "object")
}

// watch returns the largest growth of the live heap and of the process while f runs. It collects
// garbage repeatedly, because the amount of uncollected garbage depends on the load of the machine.
func watch(f func()) (heap, resident uint64) {
	heapBefore, residentBefore := heapBytes(), residentBytes()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			heap = max(heap, grown(heapBefore, heapBytes()))
			resident = max(resident, grown(residentBefore, residentBytes()))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return heap, resident
}

func grown(before, after uint64) uint64 { return max(before, after) - before }

// heapBytes collects garbage and returns the size of the remaining heap.
func heapBytes() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// residentBytes returns 0 if unknown.
func residentBytes() uint64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(io.LimitReader(file, mib)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			var kilobytes uint64
			if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
				return kilobytes * kib
			}
		}
	}
	return 0
}
