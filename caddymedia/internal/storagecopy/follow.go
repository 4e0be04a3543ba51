package storagecopy

import (
	"iter"

	"github.com/caddymedia/media/storagedrivers"
)

// follower reads a sorted list in step with another one.
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

// find reports whether the list has key. The keys of successive calls must ascend.
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
