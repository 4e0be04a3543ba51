//go:build linux

package load_test

import (
	"encoding/base64"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// BenchmarkResumable uploads 1 GiB to the same disk through this service, as a resumable upload and
// as a form, each with and without `sync`, and through tusd if that is installed. tusd never syncs.
// Compare the ratios, see [BenchmarkUpload]. MiB-added is the peak of a server's memory above that
// before an upload.
func BenchmarkResumable(b *testing.B) {
	dir := benchDir(b)
	ours := startOurs(b, filepath.Join(dir, "media"))
	all := startTusd(b, filepath.Join(dir, "tusd"))
	for _, s := range ours {
		s.name += "-form"
		s.peers = nil
		alias := filepath.Base(s.dir)
		makeDirs(b, s.dir, filepath.Join("file", alias)) // before the first item
		s.dir = filepath.Join(s.dir, "file", alias)
		all = append(all, s)
		s.name = alias
		s.peers = []string{"tusd", s.name + "-form"}
		s.head, s.resumable = resumableHeads("/api/upload/file/resumable", s.authorization, "alias", s.name, "filename", "file.pdf")
		all = append(all, s)
	}
	w := workloads[0]
	b.Run(w.name, func(b *testing.B) { w.run(b, all) })
}

// resumableHeads returns the heads of a PATCH, without its first line, and of a creation.
func resumableHeads(path, authorization string, metadata ...string) (patch, create string) {
	header := authorization + "Tus-Resumable: 1.0.0\r\n"
	patch = header + "Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n"
	create = "POST " + path + " HTTP/1.1\r\n" + header + "Upload-Metadata: "
	for i := 0; i < len(metadata); i += 2 {
		if i > 0 {
			create += ","
		}
		create += metadata[i] + " " + base64.StdEncoding.EncodeToString([]byte(metadata[i+1]))
	}
	return patch, create + "\r\n"
}

// startTusd starts tusd if it is installed.
func startTusd(b *testing.B, dir string) []server {
	b.Helper()
	tusd := servers.Installed("tusd")
	if tusd == "" {
		b.Log("tusd is not installed: there is nothing to compare with")
		return nil
	}
	makeDirs(b, dir, "files")
	addr := freeAddr(b)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	s := server{name: "tusd", addr: addr, dir: filepath.Join(dir, "files")}
	cmd := exec.CommandContext(b.Context(), tusd, "-host", host, "-port", port, "-upload-dir", s.dir)
	start(b, cmd)
	s.processes = []*os.Process{cmd.Process}
	await(b, "tcp", addr)
	s.head, s.resumable = resumableHeads("/files/", "", "filename", "file.pdf")
	return []server{s}
}

// benchDir returns the folder of a benchmark, on the disk that MEDIA_BENCH_DIR selects.
func benchDir(b *testing.B) string {
	b.Helper()
	dir := os.Getenv("MEDIA_BENCH_DIR")
	if dir == "" {
		return b.TempDir()
	}
	dir, err := os.MkdirTemp(dir, "media-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
