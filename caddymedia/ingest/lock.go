package ingest

import (
	"context"
	"slices"

	"github.com/caddymedia/media/storagedrivers"
)

// names are the locations of the objects that are being committed or deleted in this process. They
// are the same after a reload, and for storages that share a backend.
var names storagedrivers.NameLocks

// lockNames keeps others from replacing and deleting the items of the request until unlock is
// called. Where nothing is replaced each item has its lock for itself: see [Alias.share].
func (b *batch) lockNames(ctx context.Context, alias *Alias) (unlock func(), err error) {
	if !alias.Overwrite {
		return func() {}, nil
	}
	filenames := make([]string, len(b.items))
	for i, it := range b.items {
		filenames[i] = it.filename
	}
	return alias.lock(ctx, filenames...)
}

// share keeps others from deleting an item while it and its variant get a name that nobody
// else can get. Where items are replaced the name is locked already.
func (a *Alias) share(ctx context.Context, filename string) (unlock func(), err error) {
	if a.Overwrite {
		return func() {}, nil
	}
	return names.Share(ctx, a.lockName(filename))
}

func (a *Alias) lockName(filename string) string { return a.Location().Join(filename).String() }

// lock keeps others from placing and deleting items until unlock is called.
func (a *Alias) lock(ctx context.Context, filenames ...string) (unlock func(), err error) {
	wanted := make([]string, len(filenames))
	for i, filename := range filenames {
		wanted[i] = a.lockName(filename)
	}
	slices.Sort(wanted) // in one order for all, so that nobody waits in a circle
	var unlocks []func()
	unlock = func() {
		for _, one := range unlocks {
			one()
		}
	}
	for _, name := range wanted {
		one, err := names.Lock(ctx, name)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, one)
	}
	return unlock, nil
}
