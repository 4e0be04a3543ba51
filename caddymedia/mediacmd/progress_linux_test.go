package mediacmd

import (
	"fmt"
	"os"
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
