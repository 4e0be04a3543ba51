package features_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestCopyIsInterrupted: an interrupted copy reports its progress and leaves no partial item. The
// same command continues it.
func TestCopyIsInterrupted(t *testing.T) {
	t.Parallel()
	const items = 200
	c := site.NewChild(t)
	config, to := c.WriteConfig(fromTo), c.Root+"-to"
	putItems(t, c.Root, items, func(int) int { return 200 << 10 })
	args := []string{"copy", "from", "to", "--config", config, "--json"}
	run := c.Begin(args...)
	run.Await(func() bool { return copiedItems(t, to) >= 20 })
	if err := run.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	r := run.Wait()
	got := report(t, r)
	if got.Failed.Items != 0 || int64(copiedItems(t, to)) < got.Copied.Items {
		t.Errorf("%+v, and %d are in the destination", got, copiedItems(t, to))
	}
	if r.Code == 0 { // it was nearly done
		t.Log("it was done before it was interrupted")
	} else if got.Complete || got.Copied.Items >= items || !strings.Contains(r.Out, `"stopped":"interrupted"`) {
		t.Errorf("exit code %d: %s", r.Code, r.Out)
	}
	second := report(t, c.Media(args...).Must(t))
	if second.Present.Items < got.Copied.Items || second.Copied.Items+second.Present.Items != items {
		t.Errorf("then: %+v", second)
	}
	mustBeSame(t, c.Root, to)
}

// TestCopyOnTerminal: progress bars are drawn on a terminal only.
func TestCopyOnTerminal(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := c.WriteConfig(fromTo)
	putItems(t, c.Root, 200, func(int) int { return 100 << 10 })
	for _, quiet := range []bool{false, true} {
		if err := os.RemoveAll(c.Root + "-to"); err != nil {
			t.Fatal(err)
		}
		terminal, screen := openTerminal(t)
		args := []string{"copy", "from", "to", "--config", config}
		if quiet {
			args = append(args, "--quiet")
		}
		run := c.Prepare(args...)
		run.Cmd.Stderr = terminal
		run.Start()
		terminal.Close()
		shown := make(chan string)
		go func() {
			b, _ := io.ReadAll(screen) // it ends with an error after the last writer
			shown <- string(b)
		}()
		r := run.Wait().Must(t)
		got := <-shown
		for _, part := range []string{"items", " of 200", "bytes", " MiB", "/s", " left"} {
			if strings.Contains(got, part) == quiet {
				t.Errorf("quiet %v, %q: the terminal shows %q", quiet, part, got)
			}
		}
		if quiet != (r.Out == "") {
			t.Errorf("quiet %v: the result is %q", quiet, r.Out)
		}
	}
	r := c.Media("copy", "from", "to", "--config", config).Must(t)
	if r.Err != "" || !strings.Contains(r.Out, "already there") {
		t.Errorf("without a terminal: %+v", r)
	}
}

// openTerminal returns both sides of a terminal.
func openTerminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		site.Skip(t, "no terminal can be made: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size := &unix.Winsize{Row: 24, Col: 120}
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, size); err != nil {
		t.Fatal(err)
	}
	return terminal, screen
}
