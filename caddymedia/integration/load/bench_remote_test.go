//go:build linux

package load_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// BenchmarkFarList lists 10,000 items of one folder on servers that are far away: the first page of
// 100, all pages of 200, and a search that finds nothing.
func BenchmarkFarList(b *testing.B) {
	for _, kind := range site.RemoteDrivers {
		b.Run(kind.Name, func(b *testing.B) {
			p := kind.Start(b)
			fillFar(b, p)
			for _, trip := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
				b.Run(trip.String(), func(b *testing.B) {
					service := startRemoteBench(b, delayed(b, p, trip), benchDir(b))
					service.page(b, "folder=none")   // connects
					var first, all, search []float64 //nolint:prealloc // b.N is small
					for range b.N {
						first = append(first, seconds(func() { service.page(b, "folder=many") }))
						all = append(all, seconds(func() { service.walk(b, "folder=many&limit=200", farItems, nil) }))
						search = append(search, seconds(func() { service.walk(b, "folder=many&search=nothing", 0, nil) }))
					}
					b.ReportMetric(0, "ns/op") // meaningless for all together
					b.ReportMetric(1000*median(first), "ms-first")
					b.ReportMetric(median(all), "s-all")
					b.ReportMetric(median(search), "s-search")
				})
			}
		})
	}
}

const farItems = 10_000

// fillFar stores the items of BenchmarkFarList, in requests of 200.
func fillFar(b *testing.B, p site.Backend) {
	b.Helper()
	dir := benchDir(b)
	path := filepath.Join(dir, "item.pdf")
	site.PutFile(b, path, "%PDF-1.7\n")
	service := startRemoteBench(b, p, dir)
	for range farItems / 200 {
		service.send(b, "?sub_folder=many", func(form *multipart.Writer) error {
			var err error
			for i := range 200 {
				err = errors.Join(err, addFile(form, path, fmt.Sprintf("%d-%d.pdf", service.uploads, i)))
			}
			return err
		})
	}
}

// BenchmarkManyItems lists 1,000,000 items, or MEDIA_BENCH_ITEMS, of one folder or of 1,000
// folders: the first page, once more, and all pages of 200 or those of two minutes, each name once
// and in order. A search in all of them goes on at its cursors. The memory of the service is
// sampled before, at its peak and afterwards. MEDIA_BENCH_DIR selects the disk of the local folder,
// and TMPDIR that of versitygw.
func BenchmarkManyItems(b *testing.B) {
	number := site.Number(b, "MEDIA_BENCH_ITEMS", 1_000_000)
	for _, folders := range []int{1, 1000} {
		b.Run(fmt.Sprintf("folders=%d", folders), func(b *testing.B) {
			p, dir := site.StartS3(b), benchDir(b)
			service := startRemoteBench(b, p, dir)
			for alias, root := range map[string]string{"near": filepath.Join(dir, "near"), "content": filepath.Join(p.Objects, "bench")} {
				names := fillFolders(b, filepath.Join(root, "file", alias), folders, number)
				b.Run(alias, func(b *testing.B) { service.benchMany(b, alias, names) })
			}
		})
	}
}

// fillFolders creates empty files and returns their names below the root, in their order.
func fillFolders(b *testing.B, root string, folders, number int) []string {
	b.Helper()
	names := make([]string, number)
	for i := range names {
		names[i] = fmt.Sprintf("%04d/item-%07d.pdf", i*folders/number, i)
		name := filepath.Join(root, names[i])
		if i == 0 || filepath.Dir(names[i]) != filepath.Dir(names[i-1]) {
			makeDirs(b, filepath.Dir(name), "")
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return names
}

func (s *remoteBench) benchMany(b *testing.B, alias string, names []string) {
	time.Sleep(5 * time.Second) // the names of a folder that has just changed are not kept
	s.alias = alias
	before, peak, _ := watchMemory([]*os.Process{s.process})
	for b.Loop() {
		b.ReportMetric(1000*seconds(func() { s.page(b, "folder=0000") }), "ms-first")
		b.ReportMetric(1000*seconds(func() { s.page(b, "folder=0000") }), "ms-again")
		pages := 0
		end := time.Now().Add(2 * time.Minute)
		took := seconds(func() {
			pages = s.walk(b, "recursive=1&limit=200", len(names), func(i int, name string) bool {
				if name != names[i] {
					b.Fatalf("item %d is %s, want %s", i, name, names[i])
				}
				return time.Now().Before(end)
			})
		})
		b.ReportMetric(float64(pages), "pages")
		b.ReportMetric(1000*took/float64(pages), "ms/page")
		const part = "77777"
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.Contains(name, part) })
		end = time.Now().Add(2 * time.Minute)
		took = seconds(func() {
			pages = s.walk(b, "limit=200&search="+part, len(found), func(i int, name string) bool {
				if name != found[i] {
					b.Fatalf("found item %d is %s, want %s", i, name, found[i])
				}
				return time.Now().Before(end)
			})
		})
		b.ReportMetric(float64(pages), "search-pages")
		b.ReportMetric(took, "s-search")
	}
	after, _ := memoryOf(s.process, "VmRSS")
	b.ReportMetric(0, "ns/op") // meaningless for all together
	b.ReportMetric(float64(before>>20), "MiB-before")
	b.ReportMetric(float64(peak()>>20), "MiB-peak")
	b.ReportMetric(float64(after>>20), "MiB-after")
}

// itemPage is a page of a list of items.
type itemPage struct {
	Result []struct{ Filename string }
	Next   string
}

// page returns a page of the items of the alias.
func (s *remoteBench) page(b *testing.B, query string) (page itemPage) {
	b.Helper()
	alias := s.alias
	if alias == "" {
		alias = "content"
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://"+s.address+"/api/items/file/"+alias+"?"+query, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s, %v", query, answer.Status, err)
	}
	return page
}

// walk lists all pages, which have number items, and returns how many pages there are. It passes
// each item to each, if that is not nil, and ends if each returns false.
func (s *remoteBench) walk(b *testing.B, query string, number int, each func(int, string) bool) (pages int) {
	b.Helper()
	n, cursor := 0, ""
	for {
		page := s.page(b, query+"&cursor="+url.QueryEscape(cursor))
		pages++
		more := true
		for _, item := range page.Result {
			if n == number {
				b.Fatalf("%s: more than %d items", query, number)
			}
			more = each == nil || each(n, item.Filename)
			n++
		}
		if cursor = page.Next; cursor == "" && n != number {
			b.Fatalf("%s: %d items, want %d", query, n, number)
		}
		if cursor == "" || !more {
			return pages
		}
	}
}

// seconds returns how long a function takes.
func seconds(f func()) float64 {
	begin := time.Now()
	f()
	return time.Since(begin).Seconds()
}

// BenchmarkRemoteUpload sends a file of 1 GiB to a server through this service, and directly with
// rclone, to a server nearby and to one that is 20 ms away. Each iteration is one round of both.
// Compare the ratio, which is that of the medians. MEDIA_BENCH_DIR selects the disk of the spooled
// file.
func BenchmarkRemoteUpload(b *testing.B) {
	rclone := servers.Program(b, "rclone")
	for _, kind := range site.RemoteDrivers {
		if kind.Name == "s3" || kind.Name == "sftp" {
			b.Run(kind.Name, func(b *testing.B) {
				p := kind.Start(b)
				b.Run("near", func(b *testing.B) { benchRemote(b, p, rclone) })
				b.Run("20ms", func(b *testing.B) { benchRemote(b, delayed(b, p, 20*time.Millisecond), rclone) })
			})
		}
	}
}

// BenchmarkFarUpload sends files of 100 KB by one request to servers that are far away: an answer
// takes a round trip of the given time. Each iteration uploads 1, 20 and 200 files. The data
// connections of FTP are not delayed.
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

// BenchmarkFarDownload gets items from servers that are far away: one of 50 KiB without a cache,
// for the first time with a cache, and from the cache by 16 clients, as a ratio to a local folder;
// and 1 MiB from the middle of an item of 64 MiB that is not in the cache.
func BenchmarkFarDownload(b *testing.B) {
	for _, kind := range site.RemoteDrivers {
		b.Run(kind.Name, func(b *testing.B) {
			p := kind.Start(b)
			for _, trip := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond} {
				b.Run(trip.String(), func(b *testing.B) { benchFarDownload(b, p, trip) })
			}
		})
	}
}

// delayed returns a server that is a round trip away, for this service and for rclone.
func delayed(b *testing.B, p site.Backend, trip time.Duration) site.Backend {
	proxy := faults.New(b, p.Address)
	proxy.SetLatency(trip)
	p.Rclone = slices.Clone(p.Rclone)
	for i, variable := range p.Rclone {
		_, port, _ := net.SplitHostPort(p.Address)
		_, own, _ := net.SplitHostPort(proxy.Address)
		p.Rclone[i] = strings.ReplaceAll(variable, port, own)
	}
	p.Address = proxy.Address
	return p
}

func benchFarDownload(b *testing.B, p site.Backend, trip time.Duration) {
	service := startRemoteBench(b, delayed(b, p, trip), benchDir(b))
	var plain, cold, middle, warm, near []float64 //nolint:prealloc // b.N is small
	for range b.N {
		far, cached, local := service.item(b, "content", 50<<10), service.item(b, "cached", 50<<10), service.item(b, "near", 50<<10)
		service.get(b, far, "") // connects
		plain = append(plain, service.get(b, far, ""))
		cold = append(cold, service.get(b, cached, ""))
		middle = append(middle, service.get(b, service.item(b, "cached", 64<<20), "bytes=33554432-34603007"))
		warm, near = append(warm, service.rate(b, cached)), append(near, service.rate(b, local))
	}
	b.ReportMetric(0, "ns/op") // meaningless for all together
	b.ReportMetric(1000*median(plain), "ms-no-cache")
	b.ReportMetric(1000*median(cold), "ms-cold")
	b.ReportMetric(1000*median(middle), "ms-middle")
	b.ReportMetric(median(warm), "warm/s")
	b.ReportMetric(median(ratios(warm, near)), "warm/local")
}

// item uploads an item of size bytes and returns its address.
func (s *remoteBench) item(b *testing.B, alias string, size int) string {
	b.Helper()
	return s.send(b, "?alias="+alias, func(form *multipart.Writer) error {
		part, err := form.CreateFormFile("files[]", fmt.Sprintf("%d.pdf", s.uploads))
		for _, piece := range payloadOf(size) {
			if err == nil {
				_, err = part.Write(piece)
			}
		}
		return err
	})
}

// get returns the seconds of a download, of a range if it is not empty.
func (s *remoteBench) get(b *testing.B, address, byteRange string) float64 {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.Fatal(err)
	}
	if byteRange != "" {
		req.Header.Set("Range", byteRange)
	}
	begin := time.Now()
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.StatusCode >= http.StatusBadRequest || n < 50<<10 {
		b.Fatalf("%s: %s, %d bytes, %v", address, answer.Status, n, err)
	}
	return time.Since(begin).Seconds()
}

// rate returns how many downloads a second 16 clients make.
func (s *remoteBench) rate(b *testing.B, address string) float64 {
	b.Helper()
	const clients, each = 16, 150
	begin := time.Now()
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for range each {
				s.get(b, address, "")
			}
		})
	}
	group.Wait()
	return clients * each / time.Since(begin).Seconds()
}

// BenchmarkFarLargeUpload sends a file of 256 MiB at 32 MiB/s to servers that are far away. It
// reports the time of the upload, and how much of it the client waits for the answer after the last
// byte.
func BenchmarkFarLargeUpload(b *testing.B) {
	const size, rate = 256 << 20, 32 << 20
	for _, kind := range site.RemoteDrivers {
		if kind.Name != "s3" && kind.Name != "sftp" {
			continue
		}
		b.Run(kind.Name, func(b *testing.B) {
			service := startRemoteBench(b, delayed(b, kind.Start(b), 50*time.Millisecond), benchDir(b))
			var took, waited []float64 //nolint:prealloc // b.N is small
			for range b.N {
				begin := time.Now()
				var last time.Time
				service.send(b, "", func(form *multipart.Writer) error {
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
	service := startRemoteBench(b, delayed(b, p, trip), dir)
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
		begin, before := time.Now(), processorTime(b, service.process)
		service.upload(b, path)
		ours, ourCPU = append(ours, time.Since(begin).Seconds()), append(ourCPU, processorTime(b, service.process)-before)
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
	uploads        int    // whose names differ
	alias          string // of lists; content if empty
}

func startRemoteBench(b *testing.B, p site.Backend, dir string) *remoteBench {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	s := &remoteBench{address: servers.FreeAddress(b)}
	conf := filepath.Join(dir, "Caddyfile")
	site.PutFile(b, conf, fmt.Sprintf(`{
	admin off
	persist_config off
	media {
		%[1]s
		tokens memory
		spool_folder %[2]s
		storage far {
			%[3]s
		}
		storage cached {
			%[3]s
			cache %[5]s
		}
		storage near {
			driver local %[6]s
		}
		file_alias content {
			storage far
		}
		file_alias cached {
			storage cached
		}
		file_alias near {
			storage near
		}
	}
}
http://%[4]s {
	media
}
`, "account "+site.APIKey+" "+site.CheapHash+" {\nmay upload list\n}", dir, p.Driver(p.Address, "bench", ""), s.address, filepath.Join(dir, "cache"), filepath.Join(dir, "near")))
	s.token, s.process = startBenchCaddy(b, self, conf, dir, s.address)
	return s
}

// upload sends the files by one request, under new names.
func (s *remoteBench) upload(b *testing.B, paths ...string) {
	b.Helper()
	s.send(b, "", func(form *multipart.Writer) error {
		var err error
		for _, path := range paths {
			err = errors.Join(err, addFile(form, path, fmt.Sprintf("%d-%s", s.uploads, filepath.Base(path))))
		}
		return err
	})
}

// send sends the form that fill writes, with the query, and returns the address of the first item.
func (s *remoteBench) send(b *testing.B, query string, fill func(form *multipart.Writer) error) string {
	b.Helper()
	s.uploads++
	body, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() { w.CloseWithError(errors.Join(fill(form), form.Close())) }()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+s.address+"/api/upload/file"+query, body)
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
	text, err := io.ReadAll(answer.Body)
	var items struct {
		Result []struct {
			FullPath string `json:"full_path"`
		}
	}
	if err = errors.Join(err, json.Unmarshal(text, &items)); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s %s, %v", answer.Status, text, err)
	}
	return items.Result[0].FullPath
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
