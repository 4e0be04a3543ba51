package mediacmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	return master, terminal
}

// TestBars: bars count bytes in B, and nothing of them stays on the terminal.
func TestBars(t *testing.T) {
	t.Parallel()
	master, terminal := openTerminal(t)
	shown := make(chan string)
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, err := master.Read(buffer)
			if err != nil {
				close(shown)
				return
			}
			shown <- string(buffer[:n])
		}
	}()
	o := &output{err: terminal, bars: isTerminal(terminal)}
	p := o.progress()
	bytes, items := p.bytes("bytes"), p.items("items")
	bytes.setTotal(3 << 20)
	items.setTotal(5)
	bytes.add(512)
	items.add(4)
	var screen strings.Builder
	for deadline := time.After(10 * time.Second); !strings.Contains(screen.String(), "512 B of 3.0 MiB"); {
		select {
		case text := <-shown:
			screen.WriteString(text)
		case <-deadline:
			t.Fatalf("the terminal shows %q", screen.String())
		}
	}
	go func() {
		p.close()
		p.close()
		fmt.Fprint(terminal, "end of test")
	}()
	for text := range shown {
		if screen.WriteString(text); strings.Contains(screen.String(), "end of test") {
			break
		}
	}
	const erase = "\x1b[J"
	all := screen.String()
	if last := all[strings.LastIndex(all, erase)+len(erase):]; strings.TrimSpace(last) != "end of test" {
		t.Errorf("the terminal still shows %q", last)
	}
}

// TestCopyOnTerminal: a copy draws bars on a terminal. An interrupted one says so, leaves no
// partial item, and is continued by the same command.
func TestCopyOnTerminal(t *testing.T) { // not parallel: Caddy has globals
	const items = 200
	folder := t.TempDir()
	config := configFile(t, folder, []string{"from", "to"}, map[string]any{
		"file_aliases": map[string]any{"content": map[string]any{"storage": "from"}},
	})
	for i := range items {
		stored(t, filepath.Join(folder, "from"), fmt.Sprintf("file/content/%d.txt", i))
	}
	to := filepath.Join(folder, "to")
	for _, flags := range [][]string{nil, {"--json"}} {
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		master, terminal := openTerminal(t)
		shown := make(chan string)
		go func() {
			b, _ := io.ReadAll(master) // it ends with an error after the last writer
			shown <- string(b)
		}()
		ctx, interrupt := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if names, _ := os.ReadDir(filepath.Join(to, "file", "content")); len(names) > items/10 {
					interrupt()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		var out strings.Builder
		cmd := copyCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetOut(&out)
		cmd.SetErr(terminal)
		cmd.SetArgs(append([]string{"from", "to", "--config", config, "--parallel", "1"}, flags...))
		err := cmd.ExecuteContext(ctx)
		interrupt()
		terminal.Close()
		screen := <-shown
		if err == nil {
			t.Fatal("it was done before it was interrupted")
		}
		hasBars, says := strings.Contains(screen, "objects"), strings.Contains(screen, "Interrupted. Run the same command again to continue.")
		if plain := flags == nil; hasBars != plain || says != plain || strings.Contains(out.String(), `"stopped":"interrupted"`) == plain {
			t.Errorf("%q: the terminal shows %q, the result is %q", flags, screen, out.String())
		}
	}
	before := len(filesIn(t, to))
	again, messages, err := run(t, copyCommand(), "from", "to", "--config", config, "--json")
	if err != nil || len(filesIn(t, to)) != items || before >= items {
		t.Errorf("continued after %d items: %s, %q, error %v", before, again, messages, err)
	}
}
