package ingest

import (
	"context"
	"slices"

	"github.com/caddymedia/media/storagedrivers"
)

// names are those that are being replaced, or deleted, in this process. A reload changes
// nothing about them.
var names storagedrivers.NameLocks

// lockNames keeps others from replacing the items of the request until unlock is called.
func (b *batch) lockNames(ctx context.Context, alias *Alias) (unlock func(), err error) {
	filenames := make([]string, len(b.items))
	for i, it := range b.items {
		filenames[i] = it.filename
	}
	return alias.lock(ctx, filenames...)
}

// lock keeps others from replacing and deleting items until unlock is called. Where nothing
// is replaced there is nothing to lock.
func (a *Alias) lock(ctx context.Context, filenames ...string) (unlock func(), err error) {
	if !a.Overwrite {
		return func() {}, nil
	}
	wanted := make([]string, len(filenames))
	for i, filename := range filenames {
		wanted[i] = a.Storage.Name() + "/" + a.Key(filename)
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
