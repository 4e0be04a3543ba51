package commands_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

const resumeMedia = "tokens memory\n" + site.Basic

// TestUploadCommandResumes: an upload that is cut in the middle is completed by the same command, also
// after a crash of the server.
func TestUploadCommandResumes(t *testing.T) {
	t.Parallel()
	const size, limit = 40 << 20, 24 << 20
	content := strings.Repeat("0123456789abcdef", size/16)
	for name, killServer := range map[string]bool{"cut": false, "server killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p, run := beginUpload(t, content, limit)
			if killServer {
				c.Kill()
			}
			p.Cut()
			if killServer {
				c.Start(resumeMedia)
			}
			reply := run.Wait()
			lines := linesOf[uploadLine](t, reply.Out)
			if reply.Code != 0 || len(lines) != 1 || !lines[0].Success {
				t.Fatalf("%+v", reply)
			}
			if got, err := os.ReadFile(filepath.Join(c.Root, "file", "content", lines[0].Filename)); err != nil || string(got) != content {
				t.Errorf("stored %d bytes, error %v", len(got), err)
			}
			if most := int64(size + 17<<20); p.Sent() > most {
				t.Errorf("%d bytes sent, want %d at most", p.Sent(), most)
			}
		})
	}
}

// beginUpload starts an upload through a proxy, and waits until limit bytes have been sent.
func beginUpload(t *testing.T, content string, limit int64) (*site.Child, *site.CuttingProxy, *site.Command) {
	t.Helper()
	c := site.NewChild(t)
	c.Start(resumeMedia)
	p := site.NewCuttingProxy(t, c.Plain, limit)
	c.Env = append(c.Env, uploading(c, site.Password)...)
	c.Env = append(c.Env, "MEDIA_SERVER=http://"+p.Address)
	run := c.Begin("upload", "--json", localFile(c, "large.txt", content))
	<-p.Reached
	return c, p, run
}

// TestUploadCommandIsInterrupted: an interrupted upload says that the file was not stored, and leaves
// no data on the service.
func TestUploadCommandIsInterrupted(t *testing.T) {
	t.Parallel()
	c, p, run := beginUpload(t, strings.Repeat("0123456789abcdef", 40<<16), 24<<20)
	if err := run.Cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	reply := run.Wait()
	lines := linesOf[uploadLine](t, reply.Out)
	if reply.Code != 1 || len(lines) != 1 || lines[0].Message != "interrupted: it was not stored" {
		t.Errorf("%+v", reply)
	}
	p.Cut()
	site.Eventually(t, "its data is removed", func() bool {
		return !slices.ContainsFunc(site.FilesBelow(t, c.Root), func(name string) bool {
			stat, err := os.Stat(filepath.Join(c.Root, name))
			return err == nil && stat.Size() > 4<<10
		})
	})
}

// TestUploadCommandNoResume: large files go in a form if the service has no resumable uploads, or if
// the user wants that.
func TestUploadCommandNoResume(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		media string
		args  []string
	}{
		"off":         {"resumable off\n", nil},
		"--no-resume": {"", []string{"--no-resume"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := site.NewChild(t)
			c.Start(resumeMedia + test.media)
			path := localFile(c, "large.txt", strings.Repeat("x", 17<<20))
			args := append([]string{"upload", "--json", path}, test.args...)
			if code, out, messages := shell(c, uploading(c, site.Password), args...); code != 0 {
				t.Errorf("%d: %s%s", code, out, messages)
			}
		})
	}
}
