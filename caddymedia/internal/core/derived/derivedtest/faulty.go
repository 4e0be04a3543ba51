package derivedtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// Drivers are the drivers of the two sorts of storages.
var Drivers = map[string]func(t testing.TB, fail func(op, key string) error) storagedrivers.Driver{
	"memory": NewMemory, "local": NewLocal,
}

// NewMemory returns a driver in memory. fail is called as by [NewLocal].
func NewMemory(_ testing.TB, fail func(op, key string) error) storagedrivers.Driver {
	d := memory.New()
	d.Fail = fail
	return d
}

// NewLocal returns a driver in its own folder. fail, if set, is called before each operation, with
// its name and key, and its error ends the operation.
func NewLocal(t testing.TB, fail func(op, key string) error) storagedrivers.Driver {
	t.Helper()
	d := local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
	if fail == nil {
		return d
	}
	return &faulty{d, fail}
}

// faulty is a local driver with faults.
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

func (d *faulty) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	if err := d.fail("append", key); err != nil {
		return nil, err
	}
	grown, err := d.Driver.Append(ctx, key, size)
	if err != nil {
		return nil, err
	}
	return faultyAppended{grown, d, key}, nil
}

func (d *faulty) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	if err := d.fail("stage", ""); err != nil {
		return nil, err
	}
	st, err := d.Driver.Stage(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyStaged{st, d}, nil
}

// StageCopy asks for the source.
func (d *faulty) StageCopy(ctx context.Context, source storagedrivers.Info) (storagedrivers.Staged, error) {
	if err := d.fail("copy", source.Key); err != nil {
		return nil, err
	}
	st, err := d.Driver.StageCopy(ctx, source)
	if err != nil {
		return nil, err
	}
	return &faultyStaged{st, d}, nil
}

// StageLink asks for the source.
func (d *faulty) StageLink(ctx context.Context, source storagedrivers.Info) (storagedrivers.Staged, error) {
	if err := d.fail("link", source.Key); err != nil {
		return nil, err
	}
	st, err := d.Driver.StageLink(ctx, source)
	if err != nil {
		return nil, err
	}
	return &faultyStaged{st, d}, nil
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

// Commit asks for each change.
func (d *faulty) Commit(ctx context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	changes = slices.Clone(changes)
	for i, c := range changes {
		op := "delete"
		if st, ok := c.Staged.(*faultyStaged); ok {
			op, changes[i].Staged = "commit", st.Staged
		}
		if err := d.fail(op, c.Key); errors.Is(err, fs.ErrExist) {
			return nil, &storagedrivers.ExistsError{Taken: []int{i}}
		} else if err != nil {
			return nil, &storagedrivers.CommitError{Index: i, Err: err}
		}
	}
	return d.Driver.Commit(ctx, changes)
}

type faultyStaged struct {
	storagedrivers.Staged
	driver *faulty
}

func (st *faultyStaged) Read(p []byte) (int, error) {
	if err := st.driver.fail("read", ""); err != nil {
		return 0, err
	}
	return st.Staged.Read(p)
}

func (st *faultyStaged) Close() error {
	return errors.Join(st.Staged.Close(), st.driver.fail("close", ""))
}

// faultyAppended is the writer of a growing object, whose operations can fail.
type faultyAppended struct {
	storagedrivers.Appended
	driver *faulty
	key    string
}

func (a faultyAppended) Write(p []byte) (int, error) {
	if err := a.driver.fail("write", a.key); err != nil {
		return 0, err
	}
	return a.Appended.Write(p)
}

func (a faultyAppended) Flush(ctx context.Context) error {
	if err := a.driver.fail("flush", a.key); err != nil {
		return err
	}
	return a.Appended.Flush(ctx)
}

func (a faultyAppended) Adopt(ctx context.Context) (storagedrivers.Staged, error) {
	if err := a.driver.fail("adopt", a.key); err != nil {
		return nil, err
	}
	return a.Appended.Adopt(ctx)
}

// Interface guards
var (
	_ storagedrivers.Appender = (*faulty)(nil)
	_ storagedrivers.Stager   = (*faulty)(nil)
)
