package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

const resumeMedia = "tokens memory\n" + site.Basic

// TestUploadCommandResumes: an upload that is cut in the middle is completed: by the same command,
// after a crash of the server, or by the next run after a crash of the command.
func TestUploadCommandResumes(t *testing.T) {
	t.Parallel()
	const size, limit = 40 << 20, 24 << 20
	content := strings.Repeat("0123456789abcdef", size/16)
	for name, test := range map[string]struct {
		killCommand, killServer, change bool
	}{
		"cut":              {},
		"command killed":   {killCommand: true},
		"server killed":    {killServer: true},
		"file has changed": {killCommand: true, change: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := site.NewChild(t)
			c.Start(resumeMedia)
			p := site.NewCuttingProxy(t, c.Plain, limit)
			c.Env = append(c.Env, uploading(c, site.Password)...)
			c.Env = append(c.Env, "MEDIA_SERVER=http://"+p.Address)
			path := localFile(c, "large.txt", content)
			run := c.Begin("upload", "--json", path)
			<-p.Reached
			states, err := filepath.Glob(filepath.Join(c.Home, "data", "caddy", "media", "upload_states", "*.json"))
			if err != nil || len(states) != 1 {
				t.Fatalf("states %v, error %v", states, err)
			}
			if stat, err := os.Stat(states[0]); err != nil || stat.Mode().Perm() != 0o600 {
				t.Errorf("the state is %v, error %v", stat.Mode(), err)
			}
			if test.killCommand && !run.KillWhen(func() bool { return true }) {
				t.Fatal("the command has ended before")
			}
			if test.killServer {
				c.Kill()
			}
			p.Cut()
			if test.killServer {
				c.Start(resumeMedia)
			}
			want := content
			if test.change {
				want = "changed" + content[7:]
				localFile(c, "large.txt", want)
				if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			if test.killCommand {
				run = c.Begin("upload", "--json", path)
			}
			reply := run.Wait()
			lines := linesOf[uploadLine](t, reply.Out)
			if reply.Code != 0 || len(lines) != 1 || !lines[0].Success {
				t.Fatalf("%+v", reply)
			}
			if got, err := os.ReadFile(filepath.Join(c.Root, "file", "content", lines[0].Filename)); err != nil || string(got) != want {
				t.Errorf("stored %d bytes, error %v", len(got), err)
			}
			_, err = os.Stat(states[0])
			if gone := os.IsNotExist(err); gone == test.change { // that of the earlier content expires
				t.Errorf("the state afterwards: %v", err)
			}
			if most := int64(size + 17<<20); !test.change && p.Sent() > most {
				t.Errorf("%d bytes sent, want %d at most", p.Sent(), most)
			}
		})
	}
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
			if site.Exists(filepath.Join(c.Home, "cache", "caddymedia")) {
				t.Error("it has a state")
			}
		})
	}
}
