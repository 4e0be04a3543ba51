package storagecopy

import (
	"iter"

	"github.com/caddymedia/media/storagedrivers"
)

// follower goes through a list beside another one of the same order.
type follower struct {
	next func() (storagedrivers.Info, error, bool)
	stop func()

	begun, more bool
	head        storagedrivers.Info
}

func follow(list iter.Seq2[storagedrivers.Info, error]) *follower {
	next, stop := iter.Pull2(list)
	return &follower{next: next, stop: stop}
}

// find tells whether the list has key; each key must come behind the one before.
func (f *follower) find(key string) (storagedrivers.Info, bool, error) {
	for !f.begun || f.more && f.head.Key < key {
		f.begun = true
		var err error
		if f.head, err, f.more = f.next(); err != nil {
			return storagedrivers.Info{}, false, err
		}
	}
	return f.head, f.more && f.head.Key == key, nil
}
