package ingest

import (
	"context"
	"slices"

	"github.com/caddymedia/media/storagedrivers"
)

// names are those that are being replaced in this process. A reload changes nothing about
// them.
var names storagedrivers.NameLocks

// lockNames keeps others from replacing the items of the request until unlock is called.
// Where nothing is replaced there is nothing to lock.
func (b *batch) lockNames(ctx context.Context, alias *Alias) (unlock func(), err error) {
	if !alias.Overwrite {
		return func() {}, nil
	}
	wanted := make([]string, len(b.items))
	for i, it := range b.items {
		wanted[i] = alias.Storage.Name() + "/" + alias.Key(it.filename)
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
