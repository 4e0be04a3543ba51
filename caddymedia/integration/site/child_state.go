package site

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Metric returns the sum of all series of a metric that have the labels (`operation="stage"`).
func (c *Child) Metric(name string, labels ...string) float64 {
	c.T.Helper()
	_, text := c.Ask(http.MethodGet, "/metrics", "")
	sum := 0.0
series:
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(line, label) {
				continue series
			}
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		if err != nil {
			c.T.Fatalf("metric %q: %v", line, err)
		}
		sum += value
	}
	return sum
}

// Staged returns how many uploads have started storing data since the last reload.
func (c *Child) Staged() float64 {
	c.T.Helper()
	return c.Metric("caddy_media_storage_operation_seconds_count", `operation="stage"`)
}

// Refused returns how many uploads of files have failed since the last reload.
func (c *Child) Refused() float64 {
	c.T.Helper()
	return c.Metric("caddy_media_failed_requests_total", `endpoint="file"`)
}

// FilesBelow returns the regular files below a folder in order, including hidden ones.
func FilesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(folder, path)
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return files
}

// MustHaveOnly expects a folder to hold these files and nothing else, hidden or not.
func MustHaveOnly(t *testing.T, folder string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := FilesBelow(t, folder); !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
}

// OpenFiles returns the files below a folder that a child has open, or false if the system does not
// report them.
func (c *Child) OpenFiles(folder string) ([]string, bool) {
	c.T.Helper()
	links := filepath.Join("/proc", strconv.Itoa(c.Cmd.Process.Pid), "fd")
	entries, err := os.ReadDir(links)
	if err != nil {
		return nil, false
	}
	var open []string
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(links, entry.Name())); err == nil && strings.HasPrefix(target, folder) {
			open = append(open, target)
		}
	}
	return open, true
}

// Hidden returns the names below a folder that callers cannot see.
func Hidden(t *testing.T, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*", ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Exists reports whether there is a file or folder at path.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
