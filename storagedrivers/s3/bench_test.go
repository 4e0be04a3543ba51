//go:build unix

package s3

import (
	"crypto/rand"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// BenchmarkPut stores one file of 1 GiB in versitygw, and does the same with rclone if it is
// installed. Each iteration runs both, so that other load on the machine affects both; compare the
// ratio. MEDIA_BENCH_DIR selects the disk of the file and of the server's temporary files; TMPDIR
// selects that of the server.
func BenchmarkPut(b *testing.B) {
	dir := os.Getenv("MEDIA_BENCH_DIR")
	if dir == "" {
		b.Skip("MEDIA_BENCH_DIR is not set")
	}
	path := randomFile(b, dir, 1<<30)
	s := real(b)
	c := s.fresh(b)
	ways := map[string]func() (cpu time.Duration){"driver": func() time.Duration { return putFile(b, s.driver(b, c), path) }}
	if program := servers.Installed("rclone"); program != "" {
		ways["rclone"] = func() time.Duration { return rclone(b, program, c, path) }
	}
	d := s.driver(b, c)
	defer d.Close()
	wall, cpu := map[string][]float64{}, map[string][]float64{}
	for range b.N {
		for name, way := range ways {
			start := time.Now()
			used := way()
			wall[name] = append(wall[name], time.Since(start).Seconds())
			cpu[name] = append(cpu[name], used.Seconds())
			test.Must(b, d.Delete(b.Context(), "object", storagedrivers.DeleteOptions{}))
			syscall.Sync()
		}
	}
	b.ReportMetric(0, "ns/op") // of both together it says nothing
	for name := range ways {
		b.ReportMetric((1<<30)/1e6/median(wall[name]), name+"-MB/s")
		b.ReportMetric(median(cpu[name]), name+"-cpu-s")
	}
	if wall["rclone"] != nil {
		b.ReportMetric(median(wall["rclone"])/median(wall["driver"]), "driver/rclone")
	}
}

func randomFile(b *testing.B, dir string, size int64) string {
	b.Helper()
	path := filepath.Join(dir, "media-bench-object")
	file, err := os.Create(path)
	test.Must(b, err)
	b.Cleanup(func() { os.Remove(path) })
	defer file.Close()
	_, err = io.CopyN(file, rand.Reader, size)
	test.Must(b, err)
	return path
}

func putFile(b *testing.B, d *driver, path string) time.Duration {
	b.Helper()
	defer d.Close()
	before := processTime(b)
	file, err := os.Open(path)
	test.Must(b, err)
	defer file.Close()
	_, err = d.Put(b.Context(), "object", file, storagedrivers.PutOptions{})
	test.Must(b, err)
	return processTime(b) - before
}

func rclone(b *testing.B, program string, c Config, path string) time.Duration {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), program, "copyto", "--config", "", path, "bench:"+c.Bucket+"/object")
	cmd.Env = append(os.Environ(),
		"RCLONE_CONFIG_BENCH_TYPE=s3", "RCLONE_CONFIG_BENCH_PROVIDER=Other",
		"RCLONE_CONFIG_BENCH_ENDPOINT="+c.Endpoint,
		"RCLONE_CONFIG_BENCH_ACCESS_KEY_ID="+c.AccessKeyID,
		"RCLONE_CONFIG_BENCH_SECRET_ACCESS_KEY="+c.SecretAccessKey,
		"RCLONE_CONFIG_BENCH_NO_CHECK_BUCKET=true",
	)
	if output, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("rclone: %v: %s", err, output)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// processTime returns the processor time of the process.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	test.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
