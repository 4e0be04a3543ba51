package local

import (
	"context"
	"io"

	"github.com/caddymedia/media/storagedrivers"
)

// Check checks the folder at the path.
func (f *Follower) Check(ctx context.Context) error {
	return f.use(func(d *Driver) error { return d.Check(ctx) })
}

// Features returns the guarantees, which are the same for every folder.
func (f *Follower) Features() storagedrivers.Features { return new(Driver).Features() }

// Close closes the current folder.
func (f *Follower) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.swept = false
	if f.current == nil {
		return nil
	}
	err := f.current.references.Close()
	f.current = nil
	return err
}

// Put stores r in the folder at the path.
func (f *Follower) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (info storagedrivers.Info, err error) {
	err = f.use(func(d *Driver) (err error) {
		info, err = d.Put(ctx, key, r, opts)
		return err
	})
	return info, err
}

// Stage returns a new object in the folder at the path, which stays open until the object is
// closed.
func (f *Follower) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	g, err := f.follow()
	if err != nil {
		return nil, err
	}
	st, err := g.stage(ctx)
	if err != nil {
		g.release()
		return nil, err
	}
	st.closed = g.release
	return st, nil
}

// Append opens an object in the folder at the path, which stays open until the writer, or the object
// that it adopts, is closed.
func (f *Follower) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	g, err := f.follow()
	if err != nil {
		return nil, err
	}
	w, err := g.append(ctx, key, size)
	if err != nil {
		g.release()
		return nil, err
	}
	w.closed = g.release
	return w, nil
}

// Open opens an object. Its reader does not need the folder any more.
func (f *Follower) Open(ctx context.Context, key string, rng storagedrivers.Range) (body io.ReadCloser, info storagedrivers.Info, err error) {
	err = f.look(func(d *Driver) (err error) {
		body, info, err = d.Open(ctx, key, rng)
		return err
	})
	return body, info, err
}

// Stat returns the Info of an object.
func (f *Follower) Stat(ctx context.Context, key string) (info storagedrivers.Info, err error) {
	err = f.look(func(d *Driver) (err error) {
		info, err = d.Stat(ctx, key)
		return err
	})
	return info, err
}

// Delete removes an object of the folder at the path.
func (f *Follower) Delete(ctx context.Context, key string) error {
	return f.use(func(d *Driver) error { return d.Delete(ctx, key) })
}

// List lists the folder at the path.
func (f *Follower) List(ctx context.Context, opts storagedrivers.ListOptions) (page storagedrivers.Page, err error) {
	err = f.use(func(d *Driver) (err error) {
		page, err = d.List(ctx, opts)
		return err
	})
	return page, err
}

// Sweep sweeps the folder at the path.
func (f *Follower) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) (left []storagedrivers.Leftover, err error) {
	f.mu.Lock()
	f.swept = true
	f.mu.Unlock()
	err = f.use(func(d *Driver) (err error) {
		left, err = d.Sweep(ctx, opts)
		return err
	})
	return left, err
}

// Commit makes changes in the folder at the path, which must be that of the staged objects.
func (f *Follower) Commit(ctx context.Context, changes []storagedrivers.Change) (infos []storagedrivers.Info, err error) {
	err = f.use(func(d *Driver) (err error) {
		infos, err = d.Commit(ctx, changes)
		return err
	})
	return infos, err
}

// Interface guards
var (
	_ storagedrivers.Driver   = (*Follower)(nil)
	_ storagedrivers.Stager   = (*Follower)(nil)
	_ storagedrivers.Sweeper  = (*Follower)(nil)
	_ storagedrivers.Appender = (*Follower)(nil)
)
