//go:build unix

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// newWriter returns the writer of a new object "f/object".
func newWriter(t *testing.T) *appended {
	t.Helper()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { test.Must(t, d.Close()) })
	w, err := d.Append(t.Context(), "f/object", 0)
	test.Must(t, err)
	return w.(*appended)
}

// TestAppendBlocked: a writer that waits for the disk keeps others out, and goes on.
func TestAppendBlocked(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	test.Must(t, w.locked(func() error {
		_, err := w.folder.Append(t.Context(), "f/object", 0)
		test.Is(t, err, storagedrivers.ErrInUse, "appending beside a blocked writer")
		return nil
	}))
	_, err := w.Write([]byte("more"))
	test.Must(t, err)
	next, err := w.folder.Append(t.Context(), "f/object", 4)
	test.Must(t, err)
	test.Must(t, errors.Join(next.Close(), w.Close()))
}

// TestAppendLost: bytes that the disk has not confirmed are cut after a failed sync, so that no
// later sync can confirm them.
func TestAppendLost(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	_, err := w.Write([]byte("durable"))
	test.Must(t, err)
	test.Must(t, w.Flush(t.Context()))
	_, err = w.Write([]byte("lost"))
	test.Must(t, err)
	broken := errors.New("broken")
	w.folder.synced = func(*os.File) error { return broken }
	test.Is(t, w.Flush(t.Context()), broken, "flushing to a broken disk")
	w.folder.synced = nil
	_, err = w.Write([]byte("late"))
	test.Is(t, err, storagedrivers.ErrChanged, "writing behind lost bytes")
	test.Is(t, w.Flush(t.Context()), storagedrivers.ErrChanged, "flushing lost bytes")
	test.Must(t, w.Close())
	got, err := os.ReadFile(filepath.Join(w.folder.path, "f/object"))
	test.Is(t, err, nil)
	test.Equal(t, string(got), "durable", "the object has")
}

// TestAppendToLost: a writer does not append to bytes that the disk has lost.
func TestAppendToLost(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	_, err := w.Write([]byte("lost"))
	test.Must(t, errors.Join(err, w.Close()))
	broken := errors.New("broken")
	w.folder.synced = func(*os.File) error { return broken }
	_, err = w.folder.Append(t.Context(), "f/object", 4)
	test.Is(t, err, broken, "appending on a broken disk")
	got, err := os.ReadFile(filepath.Join(w.folder.path, "f/object"))
	if err != nil || len(got) > 0 {
		t.Errorf("the object has %q, %v", got, err)
	}
}

// TestAppendInReplacedRoot: nothing is reported as durable in a folder that is not used any more.
func TestAppendInReplacedRoot(t *testing.T) {
	t.Parallel()
	f := follow(t)
	w, err := f.Append(t.Context(), "object", 0)
	test.Must(t, err)
	_, err = w.Write([]byte("some"))
	test.Must(t, err)
	f.replace(t)
	test.Is(t, w.Flush(t.Context()), storagedrivers.ErrUnavailable, "flushing")
	_, err = f.Append(t.Context(), "object", 4)
	test.Is(t, err, fs.ErrNotExist, "in the new folder")
	test.Must(t, w.Close())
	wantFiles(t, f.root)
}

// TestAppendWithoutLocks: a file that cannot be locked cannot be appended to.
func TestAppendWithoutLocks(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	test.Must(t, w.file.Close()) // a closed file cannot be locked
	_, err := w.Write([]byte("some"))
	test.Is(t, err, errors.ErrUnsupported, "writing")
	_ = w.Close() // the file is closed already
}

// The environment of a child process that appends to "f/object" of a folder.
const (
	childRoot = "MEDIA_TEST_LOCAL_ROOT"
	childDoes = "MEDIA_TEST_LOCAL_DOES"
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := runChild(root, os.Getenv(childDoes)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// piece is what a child writes at once.
const piece = 64 << 10

// grown returns the bytes of the object from offset on.
func grown(offset, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		at := uint64(offset + int64(i))
		b[i] = byte(at * 0x9e3779b97f4a7c15 >> 56)
	}
	return b
}

// runChild does one thing in the child process, which prints a line when it is done and waits for a
// line before the next step.
func runChild(root, does string) error {
	ctx, in := context.Background(), bufio.NewScanner(os.Stdin)
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	w, err := d.Append(ctx, "f/object", 0)
	if err != nil {
		return err
	}
	switch does {
	case "hold": // while another process appends
		_, err = w.Write(grown(0, piece))
		fmt.Println(err)
		in.Scan()
		_, err = w.Write([]byte("late"))
		fmt.Println(errors.Is(err, storagedrivers.ErrChanged))
		return w.Close()
	case "write": // until it is killed
		for size := int64(0); err == nil; size += piece {
			_, err = w.Write(grown(size, piece))
			fmt.Println(size + piece)
		}
		return err
	case "commit": // until it is killed before the end of a commit
		_, err = w.Write(grown(0, piece))
		st, adoptErr := w.Adopt(ctx)
		if err = errors.Join(err, adoptErr); err != nil {
			return err
		}
		other, err := d.Stage(ctx)
		if err != nil {
			return err
		}
		d.step = func(step string) {
			if step == "durable" {
				fmt.Println(nil)
				in.Scan()
			}
		}
		_, err = d.Commit(ctx, []storagedrivers.Change{
			{Staged: st, Key: "item", Options: overwrite}, {Staged: other, Key: "other", Options: overwrite},
		})
		return err
	}
	return nil
}

// child is a process that uses the folder of a test.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func startChild(t *testing.T, root, does string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.cmd.Env = append(os.Environ(), childRoot+"="+root, childDoes+"="+does)
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	test.Must(t, err)
	out, err := c.cmd.StdoutPipe()
	test.Must(t, err)
	c.in, c.out = in, bufio.NewScanner(out)
	test.Must(t, c.cmd.Start())
	return c
}

// line returns the next line of the child.
func (c *child) line() string {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("the child has ended: %v", c.out.Err())
	}
	return c.out.Text()
}

func (c *child) says(want string) {
	c.t.Helper()
	if got := c.line(); got != want {
		c.t.Fatalf("the child says %q, want %q", got, want)
	}
}

// kill kills the child with SIGKILL.
func (c *child) kill() {
	test.Must(c.t, c.cmd.Process.Kill())
	for c.out.Scan() { // lines that it has printed before
	}
	_ = c.cmd.Wait() // it was killed
}

// continues adds a piece to "f/object" in this process and commits it as "item".
func continues(t *testing.T, s *storagedrivers.Storage, root string, size int64) {
	t.Helper()
	g, err := s.Growing(t.Context(), "f/object")
	test.Must(t, err)
	w, err := g.Append(t.Context(), storagedrivers.GrowthOptions{})
	test.Must(t, err)
	_, err = w.Write(grown(size, piece))
	test.Must(t, errors.Join(err, w.Flush(t.Context()), w.Close()))
	st, err := s.StageGrown(t.Context(), nil, g)
	test.Must(t, err)
	_, err = s.Commit(t.Context(), storagedrivers.Change{Staged: st, Key: "item"})
	test.Must(t, err)
	test.Must(t, st.Close())
	got, err := os.ReadFile(filepath.Join(root, "item"))
	if err != nil || string(got) != string(grown(0, size+piece)) {
		t.Errorf("the item has %d bytes, %v, want those of both processes, %d", len(got), err, size+piece)
	}
}

// TestAppendBesideProcess: the writer of a process that waits for its client keeps no other process
// out, and appends nothing behind its bytes.
func TestAppendBesideProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := startChild(t, root, "hold")
	c.says("<nil>")
	continues(t, open(t, root), root, piece)
	_, err := io.WriteString(c.in, "\n")
	test.Must(t, err)
	c.says("true")
	test.Must(t, c.cmd.Wait())
	stat, err := os.Stat(filepath.Join(root, "item"))
	test.Must(t, err)
	test.Equal(t, stat.Size(), 2*piece, "the item has", "bytes")
}

// TestAppendKilled: all bytes that a killed process has written are there, and another process goes
// on behind them.
func TestAppendKilled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := startChild(t, root, "write")
	var last string
	for range 100 {
		last = c.line()
	}
	c.kill()
	s := open(t, root)
	info, err := s.Stat(t.Context(), "f/object")
	test.Must(t, err)
	var written int64
	if _, err := fmt.Sscan(last, &written); err != nil || info.Size < written {
		t.Fatalf("%d bytes are left of %q, %v", info.Size, last, err)
	}
	continues(t, s, root, info.Size)
	wantFiles(t, root, "f", "item")
}

// TestAdoptKilled: the next process undoes the group, and can adopt the object again.
func TestAdoptKilled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	test.Must(t, os.WriteFile(filepath.Join(root, "item"), []byte("old"), 0o600))
	c := startChild(t, root, "commit")
	c.says("<nil>")
	c.kill()
	s := open(t, root)
	test.Must(t, s.Check(t.Context()))
	for name, want := range map[string]string{"item": "old", "f/object": string(grown(0, piece))} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, %v", name, len(got), err)
		}
	}
	wantFiles(t, root, "f", "item")
	test.Must(t, os.Remove(filepath.Join(root, "item")))
	continues(t, s, root, piece)
	if left, err := filepath.Glob(filepath.Join(root, scratchPrefix+"*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %s, %v", strings.Join(left, " "), err)
	}
}
