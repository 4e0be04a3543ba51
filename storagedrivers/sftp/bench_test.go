//go:build unix

package sftp

import (
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// benchSize is the size in bytes of one upload of BenchmarkUpload.
const benchSize = 1 << 30

// BenchmarkUpload sends 1 GiB from a file to OpenSSH, alternately by this driver and by `rclone
// copyto`. It compares rates and the processor time of the client. This driver syncs the object,
// and rclone reads it again to compare checksums; both are also measured without that.
// MEDIA_BENCH_DIR selects the disk.
func BenchmarkUpload(b *testing.B) {
	rclone := servers.Program(b, "rclone")
	dir, err := os.MkdirTemp(os.Getenv("MEDIA_BENCH_DIR"), "media-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	server := servers.OpenSSH(b)
	h := hostOf(b, server)
	h.config.Root = dir
	source := benchFile(b, filepath.Join(dir, "source"))
	seconds, cpu := map[string][]float64{}, map[string][]float64{}
	measure := func(name string, f func() (cpu time.Duration)) {
		start := time.Now()
		used := f()
		seconds[name] = append(seconds[name], time.Since(start).Seconds())
		cpu[name] = append(cpu[name], used.Seconds())
		os.Remove(filepath.Join(dir, "objects", "target"))
		unix.Sync()
	}
	d := h.driver(b, "objects")
	defer d.Close()
	if err := d.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	copyTo := func(flags ...string) func() time.Duration {
		return func() time.Duration { return rcloneCopy(b, rclone, server, source, dir+"/objects/target", flags) }
	}
	ways := []struct {
		name string
		copy func() time.Duration
	}{
		{"driver", func() time.Duration { return driverCopy(b, d, source) }},
		{"rclone", copyTo()},
		{"unchecked-rclone", copyTo("--sftp-disable-hashcheck")},
	}
	ways[2].copy() // the first one pays for memory that the machine has reclaimed
	os.Remove(filepath.Join(dir, "objects", "target"))
	order := rand.New(rand.NewPCG(1, 2))
	for range b.N {
		for _, i := range order.Perm(len(ways)) {
			measure(ways[i].name, ways[i].copy)
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, way := range ways {
		b.ReportMetric(benchSize/1e6/median(seconds[way.name]), way.name+"-MB/s")
		b.ReportMetric(median(cpu[way.name]), way.name+"-cpu-s")
		if way.name == "driver" {
			continue
		}
		var ratios []float64
		for i, took := range seconds[way.name] {
			ratios = append(ratios, took/seconds["driver"][i])
		}
		b.ReportMetric(median(ratios), "driver/"+way.name)
	}
}

func benchFile(b *testing.B, path string) string {
	b.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	if _, err := io.CopyN(file, rand.NewChaCha8([32]byte{}), benchSize); err != nil {
		b.Fatal(err)
	}
	return path
}

func driverCopy(b *testing.B, d *driver, source string) time.Duration {
	b.Helper()
	file, err := os.Open(source)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	before := processorTime(b)
	if _, err := d.Put(b.Context(), "target", file, create); err != nil {
		b.Fatal(err)
	}
	return processorTime(b) - before
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func rcloneCopy(b *testing.B, rclone string, s *servers.SSH, source, target string, flags []string) time.Duration {
	b.Helper()
	host, port, _ := strings.Cut(s.Address, ":")
	args := append([]string{
		"copyto", "--config=", "--sftp-host=" + host, "--sftp-port=" + port, "--sftp-user=" + s.User,
		"--sftp-key-file=" + s.KeyFile, source, ":sftp:" + target,
	}, flags...)
	cmd := exec.CommandContext(b.Context(), rclone, args...)
	if output, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("rclone: %v: %s", err, output)
	}
	if stat, err := os.Stat(target); err != nil || stat.Size() != benchSize {
		b.Fatalf("rclone stored %v, error %v", stat, err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
