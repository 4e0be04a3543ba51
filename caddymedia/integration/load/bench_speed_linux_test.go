package load_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// speedWorkloads are the requests that BenchmarkSpeed measures.
// A round takes about half a second of processor time, which a tick of the scheduler or a run of
// the garbage collector does not move.
var speedWorkloads = []workload{
	{name: "POST-50KiB", clients: 16, files: 1000, size: 50 << 10},
	{name: "POST-20x50KiB", clients: 4, files: 1000, size: 50 << 10, parts: 20},
	{name: "POST-1GiB", clients: 1, files: 1, size: 1 << 30},
	{name: "POST-JPEG", clients: 16, files: 300, image: true},
	{name: "GET-50KiB", clients: 16, files: 4000, item: 50 << 10},
	{name: "GET-304", clients: 16, files: 6000, item: 50 << 10, header: "If-None-Match: %s\r\n"},
	{name: "GET-10MiB", clients: 16, files: 150, item: 10 << 20},
}

// BenchmarkSpeed measures the processor time of a request, user and system, as a ratio to that of a
// peer that does the least for the same request: Caddy's file_server, or the multipart reader of
// the Go library that copies to files. The peer is another process of the same binary. Each
// iteration is a round of both, in turn, and the ratio is the median of the rounds. `.ci/speed`
// compares it with recorded ones.
//
// Ratios to a peer of the same run are comparable between machines as far as both do work of the
// same kind. They do not show:
//   - waiting: latency, disks, locks, and `sync`, which is off, in a file system in memory;
//   - what both share: another version of Go, Caddy or the kernel changes the peer too, and what
//     Caddy does for each request hides a part of a change of ours;
//   - the processor: buffers that fall out of a small cache, cores that wait for each other, and
//     memory that is slow beside the processor move one side more than the other;
//   - work beside requests, memory, and other drivers, images, resumable uploads and TLS.
func BenchmarkSpeed(b *testing.B) {
	dir := speedDir(b)
	all := startOurs(b, filepath.Join(dir, "media"))
	ours, items := all[0], all[1] // unsynced; the other one's folder has the items to download
	peer := startSpeedPeer(b, filepath.Join(dir, "peer"), items.dir)
	ours.address, ours.items = items.address, items.items
	for _, w := range speedWorkloads {
		b.Run(w.name, func(b *testing.B) {
			ours, peer := ours, peer
			if w.item > 0 {
				ours.makeItem(b, w)
				peer.makeItem(b, w)
			}
			if w.image {
				ours.head = strings.Replace(ours.head, "/upload/file", "/upload/image", 1)
			}
			w.compare(b, ours, peer)
		})
	}
}

// compare runs b.N rounds of both servers in turn.
func (w workload) compare(b *testing.B, ours, peer server) {
	payload, cost := payloadOf(w.size), map[string][]float64{}
	if w.image {
		payload = [][]byte{[]byte(sample.PhotoJPEG(800, 600))}
		w.size = len(payload[0])
	}
	for range b.N {
		for _, s := range []server{ours, peer} {
			warm(b, filepath.Join(filepath.Dir(s.dir), "warm"), w.files*w.size)
			before := processorTime(b, s.processes...)
			s.load(b, w, payload)
			cost[s.name] = append(cost[s.name], processorTime(b, s.processes...)-before)
			if w.size > 0 {
				s.clear(b, w)
			}
		}
	}
	requests := float64(w.files / max(w.parts, 1))
	b.ReportMetric(0, "ns/op") // meaningless for both together
	b.ReportMetric(median(cost[ours.name])*1e6/requests, "us")
	b.ReportMetric(median(cost[peer.name])*1e6/requests, "peer-us")
	b.ReportMetric(median(ratios(cost[ours.name], cost[peer.name])), "ratio")
}

// speedDir returns a folder in memory if there is enough of it, otherwise one like benchDir.
func speedDir(b *testing.B) string {
	b.Helper()
	const memory, space = "/dev/shm", 3 << 30
	var disk unix.Statfs_t
	if err := unix.Statfs(memory, &disk); err != nil || int64(disk.Bavail)*disk.Bsize < space {
		b.Logf("%s has less than %d bytes: ratios differ from those of a file system in memory", memory, space)
		return benchDir(b)
	}
	b.Setenv("MEDIA_BENCH_DIR", memory)
	return benchDir(b)
}

// makeItem writes the item of a workload, and prepares the request for it.
func (s *server) makeItem(b *testing.B, w workload) {
	b.Helper()
	name := fmt.Sprintf("%d.pdf", w.item)
	site.PutFile(b, filepath.Join(s.items, name), string(slices.Concat(payloadOf(w.item)...)))
	answer, err := http.Get("http://" + s.addr + s.address + name)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	tag := answer.Header.Get("Etag")
	if answer.StatusCode != http.StatusOK || answer.ContentLength != int64(w.item) || tag == "" {
		b.Fatalf("%s: %s, %d bytes, want %d, entity tag %q", s.name, answer.Status, answer.ContentLength, w.item, tag)
	}
	s.form = false
	s.head = "GET " + s.address + name + " HTTP/1.1\r\n" + strings.ReplaceAll(w.header, "%s", tag)
}

// startSpeedPeer starts a Caddy that serves the items and stores uploads in a folder of its own.
func startSpeedPeer(b *testing.B, dir, items string) server {
	b.Helper()
	s := server{
		name: "peer", addr: servers.FreeAddress(b), form: true, dir: filepath.Join(dir, "files"),
		head: "POST / HTTP/1.1\r\n", address: "/file/synced/", items: filepath.Join(items, "file", "synced"),
	}
	makeDirs(b, dir, "files")
	conf := filepath.Join(dir, "Caddyfile")
	site.PutFile(b, conf, fmt.Sprintf(`{
	admin off
	persist_config off
}
http://%s {
	route {
		%s * %q
		file_server {
			root %q
		}
	}
}
`, s.addr, sinkDirective, s.dir, items))
	cmd := exec.CommandContext(b.Context(), os.Args[0], "run", "--config", conf, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), site.RunCaddy+"=1", "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	s.processes = []*os.Process{start(b, cmd, "tcp", s.addr)}
	return s
}

const sinkDirective = "bench_sink"

func init() {
	caddy.RegisterModule(sink{})
	httpcaddyfile.RegisterHandlerDirective(sinkDirective, func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		h.NextArg()
		return sink{Folder: h.Val()}, nil
	})
}

// sink stores the files of forms, in the fewest lines. It is what uploads are compared with, so it
// stays as it is.
type sink struct {
	Folder string `json:"folder"`
}

func (sink) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers." + sinkDirective, New: func() caddy.Module { return new(sink) }}
}

func (s sink) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Method != http.MethodPost {
		return next.ServeHTTP(w, r)
	}
	form, err := r.MultipartReader()
	if err != nil {
		return err
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(s.Folder, filepath.Base(part.FileName())))
		if err != nil {
			return err
		}
		if _, err := io.Copy(file, part); err != nil {
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
}
