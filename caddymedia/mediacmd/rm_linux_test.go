package mediacmd

import (
	"fmt"
	"strings"
	"testing"
)

// TestRmAsks: only "y" or "yes" on the terminal removes anything.
func TestRmAsks(t *testing.T) {
	for answer, removed := range map[string]bool{"y": true, "Yes": true, "": false, "n": false, "yesterday": false} {
		config, root := configured(t)
		stored(t, root, "img/content/a.jpg", "img/content/a.jpg.webp")
		master, terminal := openTerminal(t)
		if _, err := fmt.Fprintln(master, answer); err != nil {
			t.Fatal(err)
		}
		cmd := rmCommand()
		cmd.SetIn(terminal)
		_, messages, err := run(t, cmd, "img/content/a.jpg", "--config", config)
		if (err == nil) != removed || (len(keys(t, root)) == 0) != removed || !strings.HasPrefix(messages, "Remove img/content/a.jpg (1.5 KiB)? [y/N] ") {
			t.Errorf("%q: %q, error %v, left %q", answer, messages, err, keys(t, root))
		}
	}
}
