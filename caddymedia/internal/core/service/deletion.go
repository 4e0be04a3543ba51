package service

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Deletion is a request to delete items.
type Deletion struct {
	Kind item.Kind
	// Alias and Filename as in the request. The filename is empty for a set.
	Alias, Filename string
	// IsSet means that the request names a set of items.
	IsSet bool
	// Folder of a set; empty if the request names its items.
	Folder string
	// Number of items of a set that were deleted.
	Number int
	Actor  item.Actor
	// Failure is why the request was refused, or why some items of a set are left; nil otherwise.
	Failure *item.Failure
}

// FirstOf returns the first index of each of the items of a set, which a request may name twice.
func FirstOf[T comparable](items []T) map[T]int {
	first := make(map[T]int, len(items))
	for i, named := range slices.Backward(items) {
		first[named] = i
	}
	return first
}

// ErrNamedTwice means that a set has an item twice. The first one is deleted.
var ErrNamedTwice = &item.Failure{Reason: item.BadRequest, Message: "the item is named twice"}

// deletedAtOnce is how many items of a set are deleted side by side.
const deletedAtOnce = 8

// DeleteSet calls remove for each of a number of items, several side by side, and reports how many
// it has deleted. It returns the errors of remove in their order.
func (s *Service) DeleteSet(
	ctx context.Context, alias *item.Alias, actor item.Actor, items int, remove func(i int) (removed bool, err error),
) []error {
	outcomes := make([]error, items)
	var number atomic.Int64
	group := guard.NewGroup(deletedAtOnce)
	for i := range items {
		group.Go(func() error {
			outcomes[i] = guard.Call(func() error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				removed, err := remove(i)
				if removed {
					number.Add(1)
				}
				return err
			})
			return nil
		})
	}
	_ = group.Wait() // the outcomes have the errors
	d := Deletion{Kind: alias.Kind, Alias: alias.Name, Actor: actor, IsSet: true, Number: int(number.Load())}
	for _, err := range outcomes {
		if err != nil && !errors.Is(err, ErrNamedTwice) {
			d.Failure = item.OperationFailure("delete the item", err)
		}
	}
	s.observer.DeletionEnded(ctx, d)
	return outcomes
}
