package features_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// terminal is a pseudo-terminal in whose shell commands run.
type terminal struct {
	keys *os.File // the master side: input is written, output is read
	line *os.File // the command's side

	mu   sync.Mutex
	seen strings.Builder
	done chan struct{} // closed after the last output
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		site.Skip(t, "no terminal: %v", err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	size := &unix.Winsize{Row: 25, Col: 100}
	if err := unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	line, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { line.Close() })
	term := &terminal{keys: keys, line: line, done: make(chan struct{})}
	go func() {
		defer close(term.done)
		io.Copy(term, keys) // up to the error that ends it
	}()
	return term
}

func (term *terminal) Write(p []byte) (int, error) {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.Write(p)
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.seen.String()
}

// begin starts an upload of files in the terminal.
func (term *terminal) begin(c *site.Child, files ...string) *exec.Cmd {
	c.T.Helper()
	cmd := c.Program(append([]string{"media", "upload"}, files...)...)
	cmd.Env = slices.Concat(cmd.Env, uploading(c, ""), []string{"TERM=xterm"})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.line, term.line, term.line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		c.T.Fatal(err)
	}
	return cmd
}

// echoes reports whether the terminal echoes input.
func (term *terminal) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(term.line.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// asked waits for the password prompt, where input must not be echoed.
func (term *terminal) asked(t *testing.T) {
	t.Helper()
	site.Eventually(t, "the password is asked for", func() bool {
		return strings.Contains(term.text(), "Password of "+site.APIKey+" at http://") && !term.echoes(t)
	})
}

// TestUploadCommandTerminal: the password prompt does not echo, and progress bars are drawn. An interrupted prompt
// restores the terminal.
func TestUploadCommandTerminal(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Basic)
	files := []string{localFile(c, "a.txt", strings.Repeat("x", 1<<20)), localFile(c, "b.txt", "x")}
	for keys, code := range map[string]int{site.Password + "\n": 0, "\x03": 1} { // Ctrl-C
		term := newTerminal(t)
		cmd := term.begin(c, files...)
		term.asked(t)
		if _, err := term.keys.WriteString(keys); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != code {
			t.Errorf("%q: %v, want exit code %d", keys, err, code)
		}
		if !term.echoes(t) {
			t.Errorf("%q: the terminal no longer echoes", keys)
		}
		term.line.Close()
		<-term.done
		seen := term.text()
		for _, want := range []string{"/a.txt", "2 of 2 files stored", "1.0 MiB of 1.0 MiB"} {
			if strings.Contains(seen, want) != (code == 0) {
				t.Errorf("%q: the terminal shows %q", keys, seen)
			}
		}
		if strings.Contains(seen, site.Password) {
			t.Errorf("the password shows in %q", seen)
		}
	}
	site.Eventually(t, "two files are stored", func() bool { return len(site.FilesBelow(t, filepath.Join(c.Root, "file"))) == 2 })
}
