package storagedrivers_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const mib = 1 << 20

// stage returns a staged object and writes parts to it.
func stage(t *testing.T, s *storagedrivers.Storage, parts ...string) storagedrivers.Staged {
	t.Helper()
	staged, err := s.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if _, err := io.WriteString(staged, part); err != nil {
			t.Fatal(err)
		}
	}
	return staged
}

// TestSpoolBoundary: up to 1 MiB no file is created. The missing spool folder would fail it.
func TestSpoolBoundary(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: filepath.Join(t.TempDir(), "missing")})
	text := strings.Repeat("x", mib-1) + "y"
	staged := stage(t, s, text[:mib/2], text[mib/2:])
	_, err := io.WriteString(staged, "z")
	is(t, err, fs.ErrNotExist)
	is(t, staged.Close(), nil)

	staged = stage(t, s, text)
	_, err = staged.Commit(t.Context(), "key", create)
	is(t, err, nil)
	is(t, staged.Close(), nil)
	has(t, s, "key", text)
}

// TestSpoolFile: an object beyond 1 MiB is in a file without a name.
func TestSpoolFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: dir})
	text := strings.Repeat("0123456789", mib/5)
	staged := stage(t, s, text[:mib], text[mib:mib+1], text[mib+1:])
	names, err := os.ReadDir(dir)
	if err != nil || len(names) > 0 {
		t.Errorf("the spool folder holds %v, error %v", names, err)
	}
	seeks(t, staged, 0, io.SeekEnd, int64(len(text)))
	seeks(t, staged, mib-1, io.SeekStart, mib-1)
	reads(t, staged, 2, text[mib-1:mib+1])
	for _, key := range []string{"key", "other"} {
		put(t, s, "key", "taken")
		_, err = staged.Commit(t.Context(), key, create)
	}
	is(t, err, nil)
	is(t, staged.Close(), nil)
	has(t, s, "key", "taken")
	has(t, s, "other", text)
}

// TestSpoolRollback: an object that existed before, or was stored after the commit, is never
// removed.
func TestSpoolRollback(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before, after string // what others store
		opts          storagedrivers.PutOptions
		err           error
		left          string
	}{
		{"created", "", "", create, nil, ""},
		{"created by overwrite", "", "", overwrite, nil, ""},
		{"replaced", "before", "", overwrite, errors.ErrUnsupported, "text"},
		{"created, then replaced", "", "late", create, nil, "late"},
		{"replaced, then replaced", "before", "late", overwrite, errors.ErrUnsupported, "late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, memory.New(), storagedrivers.Options{})
			if tt.before != "" {
				put(t, s, "key", tt.before)
			}
			staged := stage(t, s, "text")
			_, err := staged.Commit(t.Context(), "key", tt.opts)
			is(t, err, nil)
			if tt.after != "" {
				put(t, s, "key", tt.after)
			}
			is(t, staged.Rollback(t.Context()), tt.err)
			is(t, staged.Close(), nil)
			if tt.left != "" {
				has(t, s, "key", tt.left)
				return
			}
			_, err = s.Stat(t.Context(), "key")
			is(t, err, fs.ErrNotExist)
		})
	}
}

func TestSpoolRollbackFails(t *testing.T) {
	t.Parallel()
	var failing string
	d := memory.New()
	d.Fail = func(op, _ string) error {
		if op == failing {
			return fs.ErrPermission
		}
		return nil
	}
	s := open(t, d, storagedrivers.Options{})
	for _, failing = range []string{"stat", "delete"} {
		op := failing
		failing = ""
		staged := stage(t, s, "text")
		_, err := staged.Commit(t.Context(), op, create)
		is(t, err, nil)
		failing = op
		err = staged.Rollback(t.Context())
		is(t, err, fs.ErrPermission)
		var opErr *storagedrivers.OpError
		if !errors.As(err, &opErr) || opErr.Op != "revert" || opErr.Key != op {
			t.Errorf("error %#v, want an OpError of revert with its key", err)
		}
		failing = ""
		is(t, staged.Rollback(t.Context()), nil)
		is(t, staged.Close(), nil)
	}
}

// TestSpoolOverwriteLooksFirst: nothing is replaced if Stat fails.
func TestSpoolOverwriteLooksFirst(t *testing.T) {
	t.Parallel()
	d := memory.New()
	d.Fail = func(op, _ string) error {
		if op == "stat" {
			return fs.ErrPermission
		}
		return nil
	}
	s := open(t, d, storagedrivers.Options{})
	put(t, s, "key", "old")
	staged := stage(t, s, "new")
	_, err := staged.Commit(t.Context(), "key", overwrite)
	is(t, err, fs.ErrPermission)
	is(t, staged.Close(), nil)
	has(t, s, "key", "old")
}

// brokenStager is a Stager whose Stage fails.
type brokenStager struct{ *memory.Driver }

func (brokenStager) Stage(context.Context) (storagedrivers.Staged, error) {
	return nil, storagedrivers.ErrNoSpace
}

func TestStageFails(t *testing.T) {
	t.Parallel()
	closes := 0
	s := storagedrivers.New("test", brokenStager{memory.New()}, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	_, err := s.Stage(t.Context())
	is(t, err, storagedrivers.ErrNoSpace)
	is(t, s.Close(), nil)
	if closes != 1 {
		t.Errorf("closed %d times after a failed stage, want once", closes)
	}
}

// TestSpoolRollbackAfterLostAnswers: an object of an attempt whose reply was lost does not count as
// one that existed before, and is removed by a rollback.
func TestSpoolRollbackAfterLostAnswers(t *testing.T) {
	t.Parallel()
	for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
		synctest.Test(t, func(t *testing.T) {
			d := &stub{Driver: memory.New()}
			lost := map[string]bool{}
			lose := func(op string, err error) error {
				if lost[op] {
					return err
				}
				lost[op] = true
				return errors.Join(storagedrivers.ErrUnavailable, err)
			}
			d.put = func(
				ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
			) (storagedrivers.Info, error) {
				info, err := d.Driver.Put(ctx, key, r, opts)
				if opts.Mode == storagedrivers.Overwrite { // it would not know its own object
					err = lose("put", err)
				}
				return info, err
			}
			d.remove = func(ctx context.Context, key string) error { return lose("delete", d.Driver.Delete(ctx, key)) }
			s := open(t, d, storagedrivers.Options{})
			staged := stage(t, s, "text")
			_, err := staged.Commit(t.Context(), "key", opts)
			is(t, err, nil)
			is(t, staged.Rollback(t.Context()), nil)
			is(t, staged.Close(), nil)
			_, err = s.Stat(t.Context(), "key")
			is(t, err, fs.ErrNotExist)
		})
	}
}

// TestSpoolsTogether: many small objects at once move to files before they exceed the memory, which
// is free again after them.
func TestSpoolsTogether(t *testing.T) { // not parallel: all spools share this memory
	const limit = 64
	text := strings.Repeat("x", mib)
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: t.TempDir()})
	full := open(t, memory.New(), storagedrivers.Options{SpoolDir: filepath.Join(t.TempDir(), "missing")})
	for range 2 {
		spools := make([]storagedrivers.Staged, limit)
		large := stage(t, s, text, "in a file")
		for i := range spools {
			spools[i] = stage(t, full, text)
		}
		one := stage(t, full)
		_, err := io.WriteString(one, "x")
		is(t, err, fs.ErrNotExist)
		small := stage(t, s, "small")
		_, err = small.Commit(t.Context(), "small", overwrite)
		is(t, err, nil)
		has(t, s, "small", "small")
		for _, staged := range append(spools, large, one, small) {
			is(t, staged.Close(), nil)
		}
	}
}
