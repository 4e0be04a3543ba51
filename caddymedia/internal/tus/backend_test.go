package tus_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// backend returns a new backend. fail, if set, is called before each operation; its error ends the
// operation.
type backend func(t *testing.T, fail func(op, key string) error) storagedrivers.Driver

// backends store unfinished uploads in both ways: as pieces, and as objects that grow.
var backends = map[string]backend{
	"memory": func(_ *testing.T, fail func(op, key string) error) storagedrivers.Driver {
		d := memory.New()
		d.Fail = fail
		return d
	},
	"local": func(t *testing.T, fail func(op, key string) error) storagedrivers.Driver {
		t.Helper()
		d := local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		if fail == nil {
			return d
		}
		return &faulty{d, fail}
	},
}

// site returns a site on a new backend.
func (b backend) site(t *testing.T, fail func(op, key string) error) *site {
	t.Helper()
	return newSiteOn(t, b(t, fail), media.Limits{}, nil)
}

// onEach runs a test on each of the backends, in parallel.
func onEach(t *testing.T, name string, test func(t *testing.T, b backend)) {
	t.Helper()
	for on, b := range backends {
		t.Run(on+": "+name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// faulty is a local driver whose operations can fail.
type faulty struct {
	*local.Driver
	fail func(op, key string) error
}

func (d *faulty) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	if err := d.fail("put", key); err != nil {
		return storagedrivers.Info{}, err
	}
	return d.Driver.Put(ctx, key, r, opts)
}

func (d *faulty) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	if err := d.fail("open", key); err != nil {
		return nil, storagedrivers.Info{}, err
	}
	return d.Driver.Open(ctx, key, rng)
}

func (d *faulty) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if err := d.fail("stat", key); err != nil {
		return storagedrivers.Info{}, err
	}
	return d.Driver.Stat(ctx, key)
}

func (d *faulty) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if err := d.fail("delete", key); err != nil {
		return err
	}
	return d.Driver.Delete(ctx, key, opts)
}

func (d *faulty) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	if err := d.fail("list", opts.Prefix); err != nil {
		return storagedrivers.Page{}, err
	}
	return d.Driver.List(ctx, opts)
}

func (d *faulty) Check(ctx context.Context) error {
	if err := d.fail("check", ""); err != nil {
		return err
	}
	return d.Driver.Check(ctx)
}

func (d *faulty) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	if err := d.fail("stage", ""); err != nil {
		return nil, err
	}
	return d.Driver.Stage(ctx)
}

func (d *faulty) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	if err := d.fail("append", key); err != nil {
		return nil, err
	}
	grown, err := d.Driver.Append(ctx, key, size)
	if err != nil {
		return nil, err
	}
	return faultyAppended{grown, d.fail, key}, nil
}

func (d *faulty) Commit(ctx context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	for _, c := range changes {
		if err := d.fail("commit", c.Key); err != nil {
			return nil, err
		}
	}
	return d.Driver.Commit(ctx, changes)
}

// faultyAppended is the writer of a growing object, whose operations can fail.
type faultyAppended struct {
	storagedrivers.Appended
	fail func(op, key string) error
	key  string
}

func (a faultyAppended) Write(p []byte) (int, error) {
	if err := a.fail("write", a.key); err != nil {
		return 0, err
	}
	return a.Appended.Write(p)
}

func (a faultyAppended) Flush(ctx context.Context) error {
	if err := a.fail("flush", a.key); err != nil {
		return err
	}
	return a.Appended.Flush(ctx)
}

func (a faultyAppended) Adopt(ctx context.Context) (storagedrivers.Staged, error) {
	if err := a.fail("adopt", a.key); err != nil {
		return nil, err
	}
	return a.Appended.Adopt(ctx)
}

// Interface guards
var (
	_ storagedrivers.Appender = (*faulty)(nil)
	_ storagedrivers.Stager   = (*faulty)(nil)
)
