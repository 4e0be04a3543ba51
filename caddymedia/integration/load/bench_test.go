//go:build linux

package load_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// boundary separates the parts of a form.
const boundary = "----------------------------9f1c2ab87d3e"

// firstName begins with firstNumber, which has room for the number of each upload. Requests differ
// only in this number.
const (
	firstNumber = "file-00000000"
	firstName   = firstNumber + ".pdf"
)

// client sends requests on one connection. It competes with the servers for processor time and so
// does as little as possible: only the file's name changes in prepared bytes.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
	create []byte // the request that creates a resumable upload; nil for one request

	request [][]byte // in pieces; without its first line after a create
	numbers [][]byte // the parts of request that are numbers of files
}

// lastName numbers the uploads of all rounds.
var lastName atomic.Int64

// load sends all requests of a round and returns the time from the first byte sent to the last
// answer.
func (s server) load(b *testing.B, w workload, payload [][]byte) time.Duration {
	b.Helper()
	clients := make([]*client, w.clients)
	for i := range clients {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		clients[i] = s.client(conn, payload, w)
	}
	var (
		left atomic.Int64
		wg   sync.WaitGroup
		errs = make([]error, w.clients)
	)
	left.Store(int64(w.files / max(w.parts, 1)))
	start := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				errs[i] = c.send()
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
	return took
}

// client prepares the constant parts of requests.
func (s server) client(conn net.Conn, payload [][]byte, w workload) *client {
	c := &client{conn: conn, reader: bufio.NewReader(conn)}
	head := s.head + "Host: " + s.addr + "\r\n"
	if s.resumable != "" {
		length := strconv.Itoa(w.size)
		c.create = []byte(s.resumable + "Host: " + s.addr + "\r\nContent-Length: 0\r\nUpload-Length: " + length + "\r\n\r\n")
		c.request = append([][]byte{[]byte(head + "Content-Length: " + length + "\r\n\r\n")}, payload...)
		return c
	}
	if !s.form {
		c.add(head + "Content-Length: " + strconv.Itoa(w.size) + "\r\n\r\n")
		c.request = append(c.request, payload...)
		return c
	}
	part := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"" + firstName +
		"\"\r\nContent-Type: application/pdf\r\n\r\n"
	if w.image {
		part = strings.NewReplacer(".pdf", ".jpg", "application/pdf", "image/jpeg").Replace(part)
	}
	const end = "--" + boundary + "--\r\n"
	parts := max(w.parts, 1)
	length := parts*(len(part)+w.size+len("\r\n")) + len(end)
	c.add(head + "Content-Type: multipart/form-data; boundary=" + boundary + "\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n")
	for range parts {
		c.add(part)
		c.request = append(append(c.request, payload...), []byte("\r\n"))
	}
	c.add(end)
	return c
}

// add appends a piece to the request, with a number of its own if it has the name of a file.
func (c *client) add(piece string) {
	c.request = append(c.request, []byte(piece))
	if at := strings.Index(piece, firstNumber); at >= 0 {
		at += len("file-")
		c.numbers = append(c.numbers, c.request[len(c.request)-1][at:at+8])
	}
}

// send sends one request and reads the answer.
func (c *client) send() error {
	if c.create != nil {
		return c.uploadResumable()
	}
	for _, number := range c.numbers {
		copy(number, fmt.Sprintf("%08d", lastName.Add(1)))
	}
	_, err := c.exchange(slices.Clone(c.request))
	return err
}

// uploadResumable creates an upload and sends the file.
func (c *client) uploadResumable() error {
	header, err := c.exchange(net.Buffers{c.create})
	if err != nil {
		return err
	}
	address, err := url.Parse(header.Get("Location"))
	if err != nil {
		return err
	}
	head := []byte("PATCH " + address.Path + " HTTP/1.1\r\n")
	_, err = c.exchange(append(net.Buffers{head}, c.request...))
	return err
}

// exchange sends a request and returns the header of the answer, which must be a success.
func (c *client) exchange(request net.Buffers) (http.Header, error) {
	_, sendErr := request.WriteTo(c.conn)
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, errors.Join(sendErr, err)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
	}
	if err == nil && (resp.StatusCode/100 != 2 && resp.StatusCode != http.StatusNotModified || resp.Close) {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return resp.Header, errors.Join(sendErr, err, resp.Body.Close())
}

// workload is the work of one round: the uploads to each server, or the downloads from it.
type workload struct {
	name    string
	clients int
	files   int
	size    int    // of an uploaded file, in bytes; 0 for downloads
	parts   int    // files of a request, if it is more than one
	item    int    // size of a downloaded item
	header  string // of a download; %s is the entity tag
	image   bool   // the uploads are JPEGs, of the size that they have
}

var workloads = []workload{
	{name: "1GiBx1", clients: 1, files: 1, size: 1 << 30},
	{name: "50KiBx64", clients: 64, files: 6400, size: 50 << 10},
	{name: "50KiBx1", clients: 1, files: 1000, size: 50 << 10},
	{name: "50KiBx16", clients: 16, files: 3200, size: 50 << 10},
	{name: "1MiBx16", clients: 16, files: 480, size: 1 << 20},
	{name: "20x50KiBx4", clients: 4, files: 4000, size: 50 << 10, parts: 20},
	{name: "50KiBx256", clients: 256, files: 6400, size: 50 << 10},
}

var downloads = []workload{
	{name: "50KiB", clients: 16, files: 8000, item: 50 << 10},
	{name: "50KiBx64", clients: 64, files: 8000, item: 50 << 10},
	{name: "50KiBx256", clients: 256, files: 8000, item: 50 << 10},
	{name: "304", clients: 16, files: 12000, item: 50 << 10, header: "If-None-Match: %s\r\n"},
	{name: "range", clients: 16, files: 8000, item: 10 << 20, header: "Range: bytes=5242880-5294079\r\n"},
	{name: "10MiB", clients: 16, files: 200, item: 10 << 20},
}

// server is one of the compared servers.
type server struct {
	name          string
	addr          string
	form          bool   // accepts a multipart form, otherwise the file itself by PUT
	head          string // of a request, without the headers that depend on its body
	dir           string // folder of the uploaded files
	authorization string // header of this service
	processes     []*os.Process

	items, address string // folder of downloaded items, and the path of its address

	resumable string // head of the request that creates a resumable upload; head is then that of PATCH

	peers []string // the servers that it is compared with
}

// BenchmarkUpload uploads the same bytes to the same disk through this service, with and without
// `sync`, and through the least that a handler in Caddy can do (sink). If they are installed, it
// does the same through nginx (WebDAV's PUT) and php-fpm (move_uploaded_file). Each iteration is
// one round over all of them, so that other load on the machine affects them equally. Compare the
// ratios, which are medians over the rounds, not the rates: those of requests a second, and those
// with "-cpu" of processor time. MEDIA_BENCH_DIR selects the disk, and MEDIA_BENCH_BEFORE another
// build of this program that takes part in each round.
func BenchmarkUpload(b *testing.B) {
	dir := benchDir(b)
	floor := startSpeedPeer(b, filepath.Join(dir, "floor"), dir)
	floor.name, floor.peers = "sink", []string{"nginx", "php"}
	servers := slices.Concat(startPeers(b, filepath.Join(dir, "peers")), []server{floor}, startOurs(b, filepath.Join(dir, "media")),
		startBefore(b, filepath.Join(dir, "before")))
	for _, w := range workloads {
		b.Run(w.name, func(b *testing.B) {
			w.run(b, slices.DeleteFunc(slices.Clone(servers), func(s server) bool { return w.parts > 1 && !s.form }))
		})
	}
}

// BenchmarkDownload is [BenchmarkUpload] for items that 16 clients get from the service, from
// Caddy's file_server and from nginx.
func BenchmarkDownload(b *testing.B) {
	dir := benchDir(b)
	ours := startOurs(b, filepath.Join(dir, "media"))[:1]
	servers := []server{startSpeedPeer(b, filepath.Join(dir, "peer"), ours[0].dir)}
	servers[0].name = "file_server"
	for _, s := range startPeers(b, filepath.Join(dir, "peers")) {
		if s.name == "nginx" {
			servers = append(servers, s)
		}
	}
	servers = append(servers, ours...)
	if before := startBefore(b, filepath.Join(dir, "before")); before != nil {
		servers = append(servers, before[0])
	}
	for i := range servers[1:] {
		servers[1+i].peers = []string{"file_server"}
	}
	for _, w := range downloads {
		b.Run(w.name, func(b *testing.B) {
			asked := slices.Clone(servers)
			for i := range asked {
				asked[i].makeItem(b, w)
			}
			w.run(b, asked)
		})
	}
}

// run runs b.N rounds, each over the servers in another order.
func (w workload) run(b *testing.B, servers []server) {
	seconds, cost, added := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	payload := payloadOf(w.size)
	order := rand.New(rand.NewPCG(1, 2))
	for range b.N {
		for _, i := range order.Perm(len(servers)) {
			s := servers[i]
			if w.size > 0 {
				warm(b, filepath.Join(filepath.Dir(s.dir), "warm"), w.files*w.size)
			}
			before, peak, watched := watchMemory(s.processes)
			spent := processorTime(b, s.processes...)
			took := s.load(b, w, payload)
			seconds[s.name] = append(seconds[s.name], took.Seconds())
			cost[s.name] = append(cost[s.name], processorTime(b, s.processes...)-spent)
			if watched {
				added[s.name] = append(added[s.name], float64(peak()-before)/(1<<20))
			}
			if w.size > 0 {
				s.clear(b, w)
				unix.Sync() // so that the writes of one server do not slow down the next
				time.Sleep(100 * time.Millisecond)
			}
		}
	}
	b.ReportMetric(0, "ns/op") // meaningless for all servers together
	for _, s := range servers {
		if w.files == 1 {
			b.ReportMetric(float64(w.size)/1e6/median(seconds[s.name]), s.name+"-MB/s")
		} else {
			b.ReportMetric(float64(w.files)/median(seconds[s.name]), s.name+"-files/s")
		}
		b.ReportMetric(median(cost[s.name])*1e6/float64(w.files/max(w.parts, 1)), s.name+"-us")
		if added[s.name] != nil && w.size > 0 {
			b.ReportMetric(slices.Max(added[s.name]), s.name+"-MiB-added")
		}
		for _, peer := range s.peers {
			if seconds[peer] != nil {
				b.ReportMetric(median(ratios(seconds[peer], seconds[s.name])), s.name+"/"+peer)
				b.ReportMetric(median(ratios(cost[s.name], cost[peer])), s.name+"/"+peer+"-cpu")
			}
		}
	}
}

// payloadOf returns the file in pieces of up to 1 MiB. It begins like a PDF; the rest is random, so
// that neither a file system nor a parser can save work.
func payloadOf(size int) [][]byte {
	if size == 0 {
		return nil
	}
	piece := make([]byte, min(size, 1<<20))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(piece) // it never fails
	copy(piece, "%PDF-1.7\n")
	return slices.Repeat([][]byte{piece}, size/len(piece))
}

// warm writes and deletes as many bytes as a server will. A virtual machine returns free memory to
// its host, and using that memory again for the first time is slow.
func warm(b *testing.B, path string, size int) {
	b.Helper()
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	piece := make([]byte, 1<<20)
	for range size / len(piece) {
		if _, err := file.Write(piece); err != nil {
			b.Fatal(err)
		}
	}
	if err := file.Truncate(0); err != nil {
		b.Fatal(err)
	}
}

// clear counts and truncates the uploaded files. The names stay until the end, since ext4 without a
// journal is slow to find an inode after many deletions.
func (s server) clear(b *testing.B, w workload) {
	b.Helper()
	files, bytes := 0, int64(0)
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() == 0 || filepath.Ext(path) == ".info" { // state of tusd
			return err
		}
		files++
		bytes += info.Size()
		return os.Truncate(path, 0)
	})
	if err == nil && (files != w.files || bytes != int64(w.files)*int64(w.size)) {
		err = fmt.Errorf("%d files with %d bytes are there, want %d of %d bytes each", files, bytes, w.files, w.size)
	}
	if err != nil {
		b.Fatalf("%s: %v", s.name, err)
	}
}

// ratios returns the ratio of a to b for each round.
func ratios(a, b []float64) []float64 {
	quotients := make([]float64, len(a))
	for i := range a {
		quotients[i] = a[i] / b[i]
	}
	return quotients
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
