//go:build unix

package load_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// watchMemory returns the memory of a process, and a function that returns its peak since then. ok is
// false if the system does not report it.
func watchMemory(p *os.Process) (before int64, peak func() int64, ok bool) {
	before, ok = memoryOf(p, "VmRSS")
	if !ok || os.WriteFile(proc(p, "clear_refs"), []byte("5"), 0) != nil { // resets VmHWM
		return 0, nil, false
	}
	return before, func() int64 {
		most, _ := memoryOf(p, "VmHWM")
		return most
	}, true
}
