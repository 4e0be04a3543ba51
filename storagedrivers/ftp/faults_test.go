package ftp

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
)

// open returns a driver that is closed at the end of the test.
func open(t *testing.T, config Config) *driver {
	t.Helper()
	d := newFakeDriver(config)
	t.Cleanup(func() {
		test.Is(t, d.Close(), nil)
	})
	return d
}

func put(t *testing.T, d *driver, key, content string, opts storagedrivers.PutOptions) error {
	t.Helper()
	info, err := d.Put(t.Context(), key, strings.NewReader(content), opts)
	if err != nil {
		return err
	}
	stat, err := d.Stat(t.Context(), key)
	if err != nil || stat != info || info.Size != int64(len(content)) {
		t.Errorf("put returns %+v, stat %+v, error %v", info, stat, err)
	}
	return nil
}

func read(t *testing.T, d *driver, key string) (string, error) {
	t.Helper()
	body, _, err := d.Open(t.Context(), key, all)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(body)
	return string(b), errors.Join(err, body.Close())
}

func holds(t *testing.T, d *driver, key, want string) {
	t.Helper()
	if got, err := read(t, d, key); err != nil || got != want {
		t.Errorf("%q holds %q, error %v, want %q", key, got, err, want)
	}
}

func (f *fake) has(t *testing.T, want ...string) {
	t.Helper()
	test.Same(t, test.Files(t, f.root), want, "the server has")
}

// nth returns a function that is true for the n-th command of this name.
func nth(n int64, name string) func(command, argument string) bool {
	var seen atomic.Int64
	return func(command, _ string) bool { return command == name && seen.Add(1) == n }
}

func TestLostReplyOfTheRename(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		keep bool // the server renames over nothing
		lost int64
		opts storagedrivers.PutOptions
		want error
		then string
	}{
		{"create", false, 1, create, nil, "content"},
		{"create, kept", true, 1, create, nil, "content"},
		{"overwrite", false, 1, overwrite, nil, "content"},
		{"refusal", true, 1, overwrite, storagedrivers.ErrUnavailable, "old"},
		{"trial", true, 2, overwrite, storagedrivers.ErrUnavailable, "old"},
		{"new one in place", true, 3, overwrite, nil, "content"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := (&fake{facts: true, keep: tt.keep, lose: nth(tt.lost, "RNTO")}).start(t)
			d := open(t, f.config())
			if tt.opts == overwrite {
				f.replace(t, "key", "old")
			}
			test.Is(t, put(t, d, "key", "content", tt.opts), tt.want)
			holds(t, d, "key", tt.then)
			f.has(t, "key")
		})
	}
}

// TestRenameThatNeverCame: the connection breaks before the server receives the rename.
func TestRenameThatNeverCame(t *testing.T) {
	t.Parallel()
	first := nth(1, "RNTO")
	f := &fake{facts: true}
	f.before = func(s *session, command, argument string) string {
		if first(command, argument) {
			s.raw.Close()
			return "421 too late"
		}
		return ""
	}
	f.start(t)
	d := open(t, f.config())
	test.Is(t, put(t, d, "key", "content", create), storagedrivers.ErrUnavailable)
	f.has(t)
	test.Is(t, put(t, d, "key", "content", create), nil)
	f.has(t, "key")
}

// TestBrokenUpload: after any fault no part of the object is visible, and Storage retries the
// upload.
func TestBrokenUpload(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	for name, fault := range map[string]func(f *fake){
		"truncated and called complete": func(f *fake) {
			first := nth(1, "STOR")
			f.cutData = func(command, argument string) int64 {
				if first(command, argument) {
					return 1000
				}
				return -1
			}
		},
		"control connection cut": func(f *fake) { f.lose = nth(1, "STOR") },
		"no data connection":     func(f *fake) { f.refuse(nth(1, "STOR"), "425 cannot open data connection") },
		"login refused for now":  func(f *fake) { f.refuse(nth(1, "USER"), "421 too many users") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{facts: true}
			fault(f)
			f.start(t)
			_, err := open(t, f.config()).Put(t.Context(), "a/key", strings.NewReader(content), create)
			test.Is(t, err, storagedrivers.ErrUnavailable)
			f.has(t)

			f = &fake{facts: true}
			fault(f)
			f.start(t)
			d := newFakeDriver(f.config())
			s := storagedrivers.New("test", d, storagedrivers.Options{})
			defer s.Close()
			_, err = s.Put(t.Context(), "a/key", strings.NewReader(content), create)
			test.Is(t, err, nil, "storing")
			holds(t, d, "a/key", content)
			f.has(t, "a/key")
		})
	}
}

// refuse makes the server answer with reply to the commands for which when returns true.
func (f *fake) refuse(when func(command, argument string) bool, reply string) {
	f.before = func(_ *session, command, argument string) string {
		if when(command, argument) {
			return reply
		}
		return ""
	}
}

func TestWhatServersRefuse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, reply string
		want           error
	}{
		{"STOR", "452 disk full", storagedrivers.ErrNoSpace},
		{"STOR", "451 /key: No space left on device", storagedrivers.ErrNoSpace},
		{"STOR", "553 Could not create file.", fs.ErrPermission},
		{"STOR", "550 /key: Permission denied", fs.ErrPermission},
		{"RNTO", "550 Permission denied.", fs.ErrPermission},
		{"RNTO", "550 Rename failed.", storagedrivers.ErrInvalidKey},
		{"RNFR", "550 /up: No such file or directory", storagedrivers.ErrInvalidKey},
		{"MKD", "550 Permission denied.", fs.ErrPermission},
		{"PASS", "530 Login incorrect.", fs.ErrPermission},
		{"PASS", "530 Sorry, the maximum number of clients (1) are already connected.", storagedrivers.ErrUnavailable},
		{"PASS", "421 too many connections", storagedrivers.ErrUnavailable},
	} {
		t.Run(tt.command+" "+tt.reply, func(t *testing.T) {
			t.Parallel()
			f := &fake{facts: true}
			f.refuse(func(command, _ string) bool { return command == tt.command }, tt.reply)
			f.start(t)
			d := open(t, f.config())
			for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
				test.Is(t, put(t, d, "folder/key", "content", opts), tt.want)
			}
			f.has(t)
		})
	}
}

// TestFolderRemovedByOthers: an upload succeeds if a known folder was removed by another client.
func TestFolderRemovedByOthers(t *testing.T) {
	t.Parallel()
	f := (&fake{facts: true}).start(t)
	d := open(t, f.config())
	for range 3 {
		test.Is(t, put(t, d, "a/b/key", "content", create), nil)
		f.has(t, "a/b/key")
		test.Must(t, os.RemoveAll(filepath.Join(f.root, "a")))
	}
}

// TestLoginFolder: the current folder of a connection makes no difference.
func TestLoginFolder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		f.start(t)
		f.aged(t, "a/b", true, 0)
		config := f.config()
		config.Connections = 1
		d := open(t, config)
		want := []string{"a/b/key", "c/key", "key"}
		for _, key := range slices.Backward(want) { // the last one's folder is entered
			test.Is(t, put(t, d, key, "content", create), nil)
			_, err := d.Stat(t.Context(), "a")
			test.Is(t, err, fs.ErrNotExist)
		}
		_, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: "c/"})
		test.Is(t, err, nil, "listing")
		page, err := d.List(t.Context(), storagedrivers.ListOptions{})
		got := make([]string, 0, len(page.Objects))
		for _, info := range page.Objects {
			got = append(got, info.Key)
		}
		test.Is(t, err, nil)
		test.Same(t, got, want, "listed")
	})
}
