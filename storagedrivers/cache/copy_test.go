package cache

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestCopy: a copy is made by the backend, and is read at once in place of the object that it replaces.
func TestCopy(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]Policy{
		"cached":  {Revalidate: time.Hour, FillOnUpload: true},
		"skipped": {Revalidate: time.Hour, Skip: func(string) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(newBackend(), open(t, t.TempDir(), 0), "backend", policy)
			content := random(1, mib)
			put(t, d, "source", content)
			put(t, d, "object", random(2, mib))
			has(t, d, "object", all, random(2, mib))
			source, err := d.Stat(t.Context(), "source")
			test.Is(t, err, nil)
			_, err = d.Put(t.Context(), "object", nil, storagedrivers.PutOptions{Source: &source})
			test.Is(t, err, fs.ErrExist)
			_, err = d.Put(t.Context(), "object", nil, storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, Source: &source})
			test.Is(t, err, nil)
			has(t, d, "object", all, content)
			test.Is(t, d.Close(), nil)
		})
	}
}

// roomy is a backend that reports its space.
type roomy struct{ *backend }

func (roomy) Space(context.Context) (storagedrivers.Space, error) {
	return storagedrivers.Space{Free: 2, Total: 3}, nil
}

// TestSpace: the space is that of the backend, if it reports it.
func TestSpace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		backend storagedrivers.Driver
		space   storagedrivers.Space
		err     error
	}{
		{roomy{newBackend()}, storagedrivers.Space{Free: 2, Total: 3}, nil},
		{newBackend(), storagedrivers.Space{}, errors.ErrUnsupported},
	} {
		d := New(tt.backend, within(t.TempDir()), "backend", small)
		space, err := d.(storagedrivers.SpaceReporter).Space(t.Context())
		test.Is(t, err, tt.err)
		test.Equal(t, space, tt.space, "space")
	}
}
