//go:build unix

package load_test

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// BenchmarkRemoteUpload sends a file of 1 GiB to a server through this service, and directly with
// rclone. Each iteration is one round of both. Compare the ratio, which is that of the medians.
// MEDIA_BENCH_DIR selects the disk of the spooled file.
func BenchmarkRemoteUpload(b *testing.B) {
	rclone, err := exec.LookPath("rclone")
	if err != nil {
		b.Skip(err)
	}
	for _, kind := range site.RemoteDrivers {
		if kind.Name == "s3" || kind.Name == "sftp" {
			b.Run(kind.Name, func(b *testing.B) { benchRemote(b, kind.Start(b), rclone) })
		}
	}
}

// BenchmarkFarUpload sends files of 100 KB by one request to servers that are far away: an answer takes
// a round trip of the given time. Each iteration uploads 1, 20 and 200 files. The data connections of
// FTP are not delayed.
func BenchmarkFarUpload(b *testing.B) {
	for _, kind := range site.RemoteDrivers {
		b.Run(kind.Name, func(b *testing.B) {
			p := kind.Start(b)
			for _, trip := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
				b.Run(trip.String(), func(b *testing.B) { benchFar(b, p, trip) })
			}
		})
	}
}

// BenchmarkFarLargeUpload sends a file of 256 MiB at 32 MiB/s to servers that are far away. It reports
// the time of the upload, and how much of it the client waits for the answer after the last byte.
func BenchmarkFarLargeUpload(b *testing.B) {
	const size, rate = 256 << 20, 32 << 20
	for _, kind := range site.RemoteDrivers {
		if kind.Name != "s3" && kind.Name != "sftp" {
			continue
		}
		b.Run(kind.Name, func(b *testing.B) {
			p, dir := kind.Start(b), benchDir(b)
			proxy := faults.New(b, p.Address)
			proxy.SetLatency(50 * time.Millisecond)
			p.Address = proxy.Address
			service := startRemoteBench(b, p, dir)
			var took, waited []float64 //nolint:prealloc // b.N is small
			for range b.N {
				begin := time.Now()
				var last time.Time
				service.send(b, func(form *multipart.Writer) error {
					part, err := form.CreateFormFile("files[]", fmt.Sprintf("%d.pdf", service.uploads))
					for i, piece := range payloadOf(size) {
						time.Sleep(time.Until(begin.Add(time.Duration(i*len(piece)) * time.Second / rate)))
						if err == nil {
							_, err = part.Write(piece)
						}
					}
					last = time.Now()
					return err
				})
				took, waited = append(took, time.Since(begin).Seconds()), append(waited, time.Since(last).Seconds())
			}
			b.ReportMetric(0, "ns/op") // meaningless for the chosen rate
			b.ReportMetric(median(took), "s")
			b.ReportMetric(median(waited), "s-after")
			b.ReportMetric(median(ratios(waited, took)), "after/s")
		})
	}
}

func benchFar(b *testing.B, p site.Backend, trip time.Duration) {
	dir := benchDir(b)
	paths := make([]string, 200)
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprintf("%d.pdf", i))
		if err := os.WriteFile(paths[i], payloadOf(100_000)[0], 0o600); err != nil {
			b.Fatal(err)
		}
	}
	proxy := faults.New(b, p.Address)
	proxy.SetLatency(trip)
	p.Address = proxy.Address
	service := startRemoteBench(b, p, dir)
	service.upload(b, paths[0]) // connects
	took := map[int][]float64{}
	for range b.N {
		for _, n := range []int{1, 20, 200} {
			begin := time.Now()
			service.upload(b, paths[:n]...)
			took[n] = append(took[n], time.Since(begin).Seconds())
		}
	}
	b.ReportMetric(0, "ns/op") // meaningless for all together
	for n, seconds := range took {
		b.ReportMetric(median(seconds), fmt.Sprintf("s/%d", n))
	}
}

func benchRemote(b *testing.B, p site.Backend, rclone string) {
	const size = 1 << 30
	dir := benchDir(b)
	path := filepath.Join(dir, "file.pdf")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	for _, piece := range payloadOf(size) {
		if _, err := file.Write(piece); err != nil {
			b.Fatal(err)
		}
	}
	file.Close()
	service := startRemoteBench(b, p, dir)
	var ours, theirs, ourCPU, theirCPU []float64 //nolint:prealloc // b.N is small
	for i := range b.N {
		begin, before := time.Now(), service.cpu(b)
		service.upload(b, path)
		ours, ourCPU = append(ours, time.Since(begin).Seconds()), append(ourCPU, service.cpu(b)-before)
		begin = time.Now()
		cmd := exec.CommandContext(b.Context(), rclone, "copyto", "--config", "", path,
			fmt.Sprintf("bench:%s/rclone-%d.pdf", p.Folder, i)) // it skips existing objects
		cmd.Env = os.Environ()
		for _, variable := range p.Rclone {
			cmd.Env = append(cmd.Env, "RCLONE_CONFIG_BENCH_"+variable)
		}
		if output, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("rclone: %v: %s", err, output)
		}
		theirs = append(theirs, time.Since(begin).Seconds())
		theirCPU = append(theirCPU, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	}
	b.ReportMetric(0, "ns/op") // meaningless for both together
	b.ReportMetric(size/1e6/median(ours), "MB/s")
	b.ReportMetric(size/1e6/median(theirs), "rclone-MB/s")
	b.ReportMetric(median(ratios(theirs, ours)), "of-rclone")
	b.ReportMetric(median(ourCPU), "cpu-s")
	b.ReportMetric(median(theirCPU), "rclone-cpu-s")
}

// remoteBench is this service in a child process.
type remoteBench struct {
	address, token string
	process        *os.Process
	uploads        int // whose names differ
}

func startRemoteBench(b *testing.B, p site.Backend, dir string) *remoteBench {
	b.Helper()
	s := &remoteBench{address: freeAddr(b)}
	conf := filepath.Join(dir, "Caddyfile")
	writeFile(b, conf, fmt.Sprintf(`{
	admin off
	persist_config off
	media {
		%s
		tokens memory
		spool_folder %s
		storage far {
			%s
		}
		file_alias content
	}
}
http://%s {
	media
}
`, site.Account, dir, p.Driver(p.Address, "bench", ""), s.address))
	s.token, s.process = startBenchCaddy(b, conf, dir, s.address)
	return s
}

// upload sends the files by one request, under new names.
func (s *remoteBench) upload(b *testing.B, paths ...string) {
	b.Helper()
	s.send(b, func(form *multipart.Writer) error {
		var err error
		for _, path := range paths {
			err = errors.Join(err, addFile(form, path, fmt.Sprintf("%d-%s", s.uploads, filepath.Base(path))))
		}
		return err
	})
}

// send sends the form that fill writes.
func (s *remoteBench) send(b *testing.B, fill func(form *multipart.Writer) error) {
	b.Helper()
	s.uploads++
	body, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() { w.CloseWithError(errors.Join(fill(form), form.Close())) }()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+s.address+"/api/upload/file", body)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s %s, %v", answer.Status, text, err)
	}
}

func addFile(form *multipart.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	part, err := form.CreateFormFile("files[]", name)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(part, struct{ io.Reader }{file}, make([]byte, 1<<20))
	return err
}

// cpu returns the processor time of the service in seconds, or 0 if the system does not report it.
func (s *remoteBench) cpu(b *testing.B) float64 {
	b.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.process.Pid), "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	var ticks float64
	for _, field := range fields[11:13] { // utime and stime, see proc_pid_stat(5)
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	const ticksPerSecond = 100 // on Linux, everywhere
	return ticks / ticksPerSecond
}
