package sftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/source"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// loss drops a reply or a request of a session, and ends the session.
type loss struct {
	what    atomic.Pointer[func(packet []byte) bool] // reports whether it is the request; nil is none
	request atomic.Bool                              // lose the request itself
	losses  atomic.Int32
}

// next selects the lost request: the next one that matches packet.
func (l *loss) next(packet func([]byte) bool) {
	var once atomic.Bool
	what := func(p []byte) bool { return packet(p) && once.CompareAndSwap(false, true) }
	l.what.Store(&what)
}

// lossy is a session's channel on the side of the server.
type lossy struct {
	io.ReadWriteCloser
	loss   *loss
	losing atomic.Bool
}

// Read returns bytes from the client. The server reads the length of a packet, then the rest.
func (l *lossy) Read(p []byte) (int, error) {
	n, err := l.ReadWriteCloser.Read(p)
	if what := l.loss.what.Load(); what != nil && n > 0 && (*what)(p[:n]) {
		l.loss.losses.Add(1)
		if l.loss.request.Load() {
			l.Close()
			return 0, io.EOF
		}
		l.losing.Store(true)
	}
	return n, err
}

func (l *lossy) Write(p []byte) (int, error) {
	if l.losing.Load() {
		l.Close()
		return 0, io.ErrClosedPipe
	}
	return l.ReadWriteCloser.Write(p)
}

// newLossyHost returns a server in this process that can lose packets.
func newLossyHost(t *testing.T) (*host, *loss) {
	t.Helper()
	root, loss := t.TempDir(), new(loss)
	s := startServerOf(t, func(channel io.ReadWriteCloser) error {
		return serveFolder(root, &lossy{ReadWriteCloser: channel, loss: loss})
	})
	return s.host(root, 1), loss
}

// These functions match packets that name the object.
func isLink(p []byte) bool   { return bytes.Contains(p, []byte("hardlink@openssh.com")) }
func isPosix(p []byte) bool  { return bytes.Contains(p, []byte("posix-rename@openssh.com")) }
func isRename(p []byte) bool { return p[0] == 18 }

// isCloseAfterWrite returns a function that matches the packet that closes a written file. A sweep
// may close folders at any time.
func isCloseAfterWrite() func(p []byte) bool {
	const handleAt = 5 // behind type and number
	var written []byte // its length and handle
	return func(p []byte) bool {
		if p[0] == 6 {
			end := handleAt + 4 + binary.BigEndian.Uint32(p[handleAt:])
			written = bytes.Clone(p[handleAt:end])
		}
		return p[0] == 4 && written != nil && bytes.Equal(p[handleAt:], written)
	}
}

// ways are the ways to name an object, each with its request.
var ways = []struct {
	name   string
	can    abilities
	opts   storagedrivers.PutOptions
	packet func([]byte) bool
}{
	{"link", abilities{true, true, true, true}, create, isLink},
	{"look and rename", abilities{exact: true, dates: true}, create, isRename},
	{"replace", abilities{true, true, true, true}, overwrite, isPosix},
	{"remove and rename", abilities{exact: true, dates: true}, overwrite, isRename},
}

// TestLostReply: if the reply to naming an object is lost, the driver finds out that the object has
// its name, or names it again.
func TestLostReply(t *testing.T) {
	t.Parallel()
	for _, tt := range ways {
		for _, request := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				h, loss := newLossyHost(t)
				h.force = &tt.can
				d := h.driver(t, ".")
				loss.request.Store(request)
				loss.next(tt.packet)
				info, err := d.Put(t.Context(), "folder/object", strings.NewReader("content"), tt.opts)
				test.Is(t, err, nil)
				test.Equal(t, info.Size, 7, "stored")
				test.Equal(t, loss.losses.Load(), 1, "answers were lost")
				has(t, d, "folder/object", []byte("content"))
				stat, err := d.Stat(t.Context(), "folder/object")
				test.Is(t, err, nil)
				test.Equal(t, stat, info, "stat returns", "put")
				test.Same(t, test.Files(t, h.folder), []string{"folder/object"}, "the folder has")
			})
		}
	}
}

// TestLostReplies: if the reply to the link is lost, the object keeps its time, whatever other
// replies are lost while the driver checks which object has the name.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	const requests = 12 // more than follow the link
	for after := range requests {
		t.Run(strconv.Itoa(after), func(t *testing.T) {
			t.Parallel()
			h, loss := newLossyHost(t)
			h.force = &abilities{true, true, true, true}
			d := h.driver(t, ".")
			var seen atomic.Int32 // requests since the link
			packet := func(p []byte) bool {
				const length = 4 // of the header of each packet
				if isLink(p) && seen.CompareAndSwap(0, 1) {
					return true
				}
				return len(p) > length && seen.Load() > 0 && seen.Add(1) == int32(after)+2
			}
			loss.what.Store(&packet)
			_, err := d.Put(t.Context(), "object", strings.NewReader("content"), create)
			loss.what.Store(nil)
			if err != nil {
				test.Is(t, err, storagedrivers.ErrUnavailable)
				test.IsNot(t, err, fs.ErrExist)
			}
			stat, err := os.Stat(filepath.Join(h.folder, "object"))
			test.Is(t, err, nil)
			if age := time.Since(stat.ModTime()).Abs(); age > time.Minute {
				t.Errorf("the object is of %v", stat.ModTime())
			}
			has(t, d, "object", []byte("content"))
			test.Eventually(t, "the temporary files to go", func() bool { return len(test.Files(t, h.folder)) == 1 })
		})
	}
}

// TestLostRequestAndTaken: an object of another upload with the same size is not mistaken for the
// driver's own.
func TestLostRequestAndTaken(t *testing.T) {
	t.Parallel()
	h, loss := newLossyHost(t)
	d, other := h.driver(t, "."), h.driver(t, ".")
	test.Is(t, d.Check(t.Context()), nil)
	test.Is(t, other.Check(t.Context()), nil)
	loss.request.Store(true)
	between := func(p []byte) bool {
		if !isLink(p) {
			return false
		}
		put(t, other, "folder/object", []byte("theirs!"), overwrite)
		return true
	}
	loss.next(between)
	_, err := d.Put(t.Context(), "folder/object", strings.NewReader("content"), create)
	test.Is(t, err, fs.ErrExist)
	has(t, d, "folder/object", []byte("theirs!"))
	test.Same(t, test.Files(t, h.folder), []string{"folder/object"}, "the folder has")
}

// TestLostAnswerBefore: a reply that is lost before the object is named is a failure that leaves
// nothing.
func TestLostAnswerBefore(t *testing.T) {
	t.Parallel()
	for name, packet := range map[string]func(p []byte) bool{
		"open":  func(p []byte) bool { return p[0] == 3 && bytes.Contains(p, []byte(tempSuffix)) },
		"write": func(p []byte) bool { return p[0] == 6 },
		"close": isCloseAfterWrite(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, loss := newLossyHost(t)
			d := h.driver(t, ".")
			test.Is(t, d.Check(t.Context()), nil)
			loss.next(packet)
			_, err := d.Put(t.Context(), "object", strings.NewReader("content"), create)
			test.Is(t, err, storagedrivers.ErrUnavailable)
			test.IsNot(t, err, fs.ErrExist)
			test.Eventually(t, "the temporary file to go", func() bool { return len(test.Files(t, h.folder)) == 0 })
		})
	}
}

// TestNamedLate: if the host executes a lost request late, the repeated request does not undo it.
func TestNamedLate(t *testing.T) {
	t.Parallel()
	for _, tt := range ways {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.force = &tt.can
			d := h.driver(t, ".")
			test.Is(t, run(t.Context(), d.pool, func(c *conn) error {
				u, err := d.send(t.Context(), c, "object", source.New(t.Context(), strings.NewReader("content")), tt.opts)
				if err != nil {
					return err
				}
				if err := os.Rename(filepath.Join(h.folder, u.temp), filepath.Join(h.folder, "object")); err != nil {
					return err
				}
				if d.name(c, u) == nil {
					t.Error("an object was named that has its name")
				}
				return d.nameAgain(c, u)
			}), nil)
			has(t, d, "object", []byte("content"))
		})
	}
}

// TestOneFile: two names of one file are distinguished from two files.
func TestOneFile(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *host{
		"in process": func(t *testing.T) *host { return newHost(t) },
		"OpenSSH":    func(t *testing.T) *host { return hostOf(t, servers.OpenSSH(t)) },
		"ProFTPD":    func(t *testing.T) *host { return hostOf(t, servers.ProFTPDOverSSH(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			d := h.driver(t, ".")
			test.Is(t, run(t.Context(), d.pool, func(c *conn) error {
				for _, ours := range []bool{true, false} {
					src := source.New(t.Context(), strings.NewReader("content"))
					u, err := d.send(t.Context(), c, "object", src, overwrite)
					if err != nil {
						return err
					}
					if ours {
						test.Is(t, d.create(c, u), nil)
					}
					if got, err := d.isNamed(c, u); err != nil || got {
						t.Errorf("an object that is to be replaced has its name: %t, error %v", got, err)
					}
					u.mode = storagedrivers.CreateOnly
					if got, err := d.isNamed(c, u); err != nil || got != ours {
						t.Errorf("one file: %t, error %v, want %t", got, err, ours)
					}
					test.Is(t, c.Remove(u.temp), nil)
				}
				return nil
			}), nil)
			test.Same(t, test.Files(t, h.folder), []string{"object"}, "the backend has")
		})
	}
}

// meeting is an object that is sent when all of begin have been asked for.
type meeting struct {
	*strings.Reader
	begin *sync.WaitGroup
	once  sync.Once
}

func (m *meeting) Read(p []byte) (int, error) {
	m.once.Do(func() {
		m.begin.Done()
		m.begin.Wait()
	})
	return m.Reader.Read(p)
}

// TestNamedOnce: of two uploads of one name in this process, the first one stays, also where the
// host has no links.
func TestNamedOnce(t *testing.T) {
	t.Parallel()
	h := newRequestHost(t, servers.RequestFiles{})
	drivers := []*driver{h.driver(t, "."), h.driver(t, ".")}
	for round := range 20 {
		key, errs := fmt.Sprint("key-", round), make([]error, len(drivers))
		var begin, uploads sync.WaitGroup
		begin.Add(len(drivers))
		for i, d := range drivers {
			uploads.Go(func() {
				_, errs[i] = d.Put(t.Context(), key, &meeting{Reader: strings.NewReader(fmt.Sprint(i)), begin: &begin}, create)
			})
		}
		uploads.Wait()
		stored := 0
		if errs[0] != nil {
			stored = 1
		}
		test.Is(t, errs[stored], nil)
		test.Is(t, errs[1-stored], fs.ErrExist)
		has(t, drivers[0], key, []byte(fmt.Sprint(stored)))
	}
}

// TestEmptyFolderWhileUsed: objects of a key and below it come and go at once. Each is stored, or
// its key is invalid at that moment, or taken if it must be new.
func TestEmptyFolderWhileUsed(t *testing.T) {
	t.Parallel()
	d := newHost(t).driver(t, ".")
	var group errgroup.Group
	for _, key := range []string{"a", "a/b", "a/b/c", "a/d/e", "a"} {
		for _, mode := range []storagedrivers.Mode{storagedrivers.CreateOnly, storagedrivers.Overwrite} {
			group.Go(func() error {
				for range 30 {
					_, err := d.Put(t.Context(), key, strings.NewReader("x"), storagedrivers.PutOptions{Mode: mode})
					invalid, taken := errors.Is(err, storagedrivers.ErrInvalidKey), errors.Is(err, fs.ErrExist)
					if err != nil && (invalid == taken || taken && mode == storagedrivers.Overwrite || errors.Is(err, fs.ErrNotExist)) {
						return fmt.Errorf("storing %q: %w", key, err)
					}
					if err := d.Delete(t.Context(), key, storagedrivers.DeleteOptions{}); err != nil && !errors.Is(err, fs.ErrNotExist) {
						return fmt.Errorf("deleting %q: %w", key, err)
					}
				}
				return nil
			})
		}
	}
	test.Is(t, group.Wait(), nil)
}

// TestReplacedInSteps: a host cannot replace a file in one step, and refuses to name the new object
// after the removal of the old one. The new one stays under its temporary name.
func TestReplacedInSteps(t *testing.T) {
	t.Parallel()
	var renames atomic.Int32
	h := newRequestHost(t, servers.RequestFiles{NoPosixRename: true, RefuseTaken: true, Before: func(method, path string) error {
		if method == "Rename" && strings.HasSuffix(path, tempSuffix) && renames.Add(1) > 1 {
			return fs.ErrPermission
		}
		return nil
	}})
	h.force = &abilities{}
	d := h.driver(t, ".")
	test.Is(t, os.WriteFile(filepath.Join(h.folder, "object"), []byte("old"), 0o600), nil)
	_, err := d.Put(t.Context(), "object", strings.NewReader("new"), overwrite)
	test.Fails(t, err, "the object has no name, and no error says so")
	names := test.Files(t, h.folder)
	if len(names) != 1 || !strings.HasSuffix(names[0], tempSuffix) {
		t.Fatalf("the host has %q, want the temporary file", names)
	}
	got, err := os.ReadFile(filepath.Join(h.folder, names[0]))
	test.Is(t, err, nil)
	test.Equal(t, string(got), "new", "it holds")
}
