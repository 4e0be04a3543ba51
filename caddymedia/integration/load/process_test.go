//go:build linux

package load_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// memoryOf returns a figure of the memory of a process in bytes: "VmRSS" is the resident memory,
// "VmHWM" its peak. It returns false if the system does not report it.
func memoryOf(p *os.Process, name string) (int64, bool) {
	if p == nil {
		return 0, false
	}
	status, err := os.ReadFile(proc(p, "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		return kilobytes << 10, err == nil
	}
	return 0, false
}

func proc(p *os.Process, name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.Pid), name)
}

// processorTime returns the seconds of processor time that processes and their children have had, user
// and system. The clock of a process is exact, /proc counts in hundredths of a second.
func processorTime(b *testing.B, processes ...*os.Process) float64 {
	b.Helper()
	total := 0.0
	for _, p := range processes {
		var spent unix.Timespec
		if err := unix.ClockGettime(int32(^p.Pid<<3|2), &spent); err != nil { // CPUCLOCK_SCHED of clock_getcpuclockid(3)
			b.Fatal(err)
		}
		total += float64(spent.Nano())/1e9 + processorTime(b, children(b, p)...)
	}
	return total
}

func children(b *testing.B, p *os.Process) []*os.Process {
	b.Helper()
	var found []*os.Process
	tasks, err := filepath.Glob(proc(p, "task/*/children"))
	for _, task := range tasks {
		var list []byte
		if list, err = os.ReadFile(task); err != nil {
			break
		}
		for pid := range strings.FieldsSeq(string(list)) {
			n, _ := strconv.Atoi(pid) // the kernel writes numbers
			found = append(found, &os.Process{Pid: n})
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// watchMemory returns the memory of a single process, and a function that returns its peak since then.
// ok is false if the system does not report it, or there are several.
func watchMemory(processes []*os.Process) (before int64, peak func() int64, ok bool) {
	if len(processes) != 1 {
		return 0, nil, false
	}
	p := processes[0]
	before, ok = memoryOf(p, "VmRSS")
	if !ok || os.WriteFile(proc(p, "clear_refs"), []byte("5"), 0) != nil { // resets VmHWM
		return 0, nil, false
	}
	return before, func() int64 {
		most, _ := memoryOf(p, "VmHWM")
		return most
	}, true
}
