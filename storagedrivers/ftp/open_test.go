package ftp

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// replace puts another file in place, as another client does.
func (f *fake) replace(t *testing.T, name, content string) {
	t.Helper()
	temp := filepath.Join(f.root, name+".new")
	err := os.WriteFile(temp, []byte(content), 0o600)
	if err == nil {
		err = os.Rename(temp, filepath.Join(f.root, name))
	}
	if err != nil {
		t.Error(err)
	}
}

// TestReplacedWhileOpened: between the look and the opening. Where the server says what it
// opens, the look is repeated; elsewhere it comes out at the end.
func TestReplacedWhileOpened(t *testing.T) {
	t.Parallel()
	for name, now := range map[string]string{"longer": "the new content", "shorter": "new"} {
		for _, silent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var armed atomic.Bool
				f := &fake{silent: silent}
				f.before = func(_ *session, command, _ string) string {
					if command == "RETR" && armed.Swap(false) {
						f.replace(t, "key", now)
					}
					return ""
				}
				f.start(t)
				d := open(t, f.options())
				if err := put(t, d, "key", "content", create); err != nil {
					t.Fatal(err)
				}
				armed.Store(true)
				got, err := read(t, d, "key")
				switch {
				case silent && !errors.Is(err, errReplaced):
					t.Errorf("read %q, error %v, want %v", got, err, errReplaced)
				case !silent && (err != nil || got != now):
					t.Errorf("read %q, error %v, want %q", got, err, now)
				}
				holds(t, d, "key", now)
			})
		}
	}
}

func TestBrokenDownload(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	var cut atomic.Int64
	cut.Store(-1)
	f := &fake{facts: true, cutData: func(command, _ string) int64 {
		if command != "RETR" {
			return -1
		}
		return cut.Load()
	}}
	f.start(t)
	d := open(t, f.options())
	if err := put(t, d, "key", content, create); err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 1000, int64(len(content)) - 1} {
		cut.Store(at)
		got, err := read(t, d, "key")
		fails(t, err, storagedrivers.ErrUnavailable)
		if int64(len(got)) != at || !strings.HasPrefix(content, got) {
			t.Errorf("read %d bytes, want the first %d", len(got), at)
		}
	}
	// All the bytes came, but the server takes them back.
	cut.Store(int64(len(content)))
	_, err := read(t, d, "key")
	fails(t, err, storagedrivers.ErrUnavailable)
	cut.Store(-1)
	holds(t, d, "key", content)
}

// TestClosingEarly: the connection must be as good as before, whatever was read.
func TestClosingEarly(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 1_000_000)
	f := &fake{facts: true}
	var logins atomic.Int64
	f.before = func(_ *session, command, _ string) string {
		if command == "USER" {
			logins.Add(1)
		}
		return ""
	}
	f.start(t)
	opts := f.options()
	opts.Connections = 1
	d := open(t, opts)
	if err := put(t, d, "key", content, create); err != nil {
		t.Fatal(err)
	}
	for _, length := range []int64{0, 1, 1000, int64(len(content)) - 1, int64(len(content))} {
		for _, rng := range []storagedrivers.Range{all, {Offset: 0, Length: length}} {
			body, _, err := d.Open(t.Context(), "key", rng)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, body, length); err != nil {
				t.Errorf("reading %d bytes: %v", length, err)
			}
			for range 2 {
				if err := body.Close(); err != nil {
					t.Error(err)
				}
			}
			if _, err := body.Read(make([]byte, 1)); err == nil {
				t.Error("reading succeeded after closing")
			}
			if info, err := d.Stat(t.Context(), "key"); err != nil || info.Size != int64(len(content)) {
				t.Errorf("stat after reading %d bytes: %+v, error %v", length, info, err)
			}
		}
	}
	if n := logins.Load(); n != 1 {
		t.Errorf("%d connections were made, want 1", n)
	}
}

// TestRudeServer: one that ends TLS data connections by closing them.
func TestRudeServer(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	f := (&fake{tls: secured, rude: true}).start(t)
	d := open(t, f.options())
	if err := put(t, d, "folder/key", content, create); err != nil {
		t.Fatal(err)
	}
	holds(t, d, "folder/key", content)
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(page.Objects) != 1 {
		t.Errorf("listed %+v, error %v", page.Objects, err)
	}
}
