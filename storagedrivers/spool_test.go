package storagedrivers_test

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const mib = 1 << 20

// stage returns a staged object and writes parts to it.
func stage(t *testing.T, s *storagedrivers.Storage, parts ...string) storagedrivers.Staged {
	t.Helper()
	staged, err := s.Stage(t.Context())
	test.Must(t, err)
	for _, part := range parts {
		_, err := io.WriteString(staged, part)
		test.Must(t, err)
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
	test.Is(t, err, fs.ErrNotExist)
	test.Is(t, staged.Close(), nil)

	staged = stage(t, s, text)
	err = commit(t.Context(), s, staged, "key", create)
	test.Is(t, err, nil)
	test.Is(t, staged.Close(), nil)
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
		err = commit(t.Context(), s, staged, key, create)
	}
	test.Is(t, err, nil)
	test.Is(t, staged.Close(), nil)
	has(t, s, "key", "taken")
	has(t, s, "other", text)
}

// brokenStager is a Stager whose Stage fails.
type brokenStager struct {
	*memory.Driver
	storagedrivers.Stager
}

func (brokenStager) Commit(context.Context, []storagedrivers.Change) ([]storagedrivers.Info, error) {
	return nil, storagedrivers.ErrNoSpace
}

func (brokenStager) Stage(context.Context) (storagedrivers.Staged, error) {
	return nil, storagedrivers.ErrNoSpace
}

func TestStageFails(t *testing.T) {
	t.Parallel()
	closes := 0
	s := storagedrivers.New("test", brokenStager{Driver: memory.New()}, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	_, err := s.Stage(t.Context())
	test.Is(t, err, storagedrivers.ErrNoSpace)
	test.Is(t, s.Close(), nil)
	test.Equal(t, closes, 1, "closed", "times after a failed stage")
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
		test.Is(t, err, fs.ErrNotExist)
		small := stage(t, s, "small")
		err = commit(t.Context(), s, small, "small", overwrite)
		test.Is(t, err, nil)
		has(t, s, "small", "small")
		for _, staged := range append(spools, large, one, small) {
			test.Is(t, staged.Close(), nil)
		}
	}
}
