package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// maxCounted and maxCountTime bound the count of one alias.
	maxCounted   = 2_000_000
	maxCountTime = 5 * time.Minute
	// usageAge is the age of a count, and failedAge that of a failed attempt, from which on an alias
	// is counted again.
	usageAge  = 10 * time.Minute
	failedAge = time.Minute
	// countStep is the number of objects between two pauses of a count.
	countStep = 1000
	// countOwner is the owner of the operations of counts, see [storagedrivers.WithOwner].
	countOwner = "usage"
)

// Count is a number of objects, and their bytes.
type Count struct{ Objects, Bytes int64 }

func (c *Count) add(info storagedrivers.Info) {
	c.Objects++
	c.Bytes += info.Size
}

// Usage is what an alias holds, by its last count.
type Usage struct {
	Items, Variants, Renditions, Trash Count
	// AtLeast means that a bound ended the count before the last object.
	AtLeast bool
	// Counted is when the count ended; zero before the first one.
	Counted time.Time
	// Err is the error of an attempt to count that failed since; nil if there is none.
	Err error
	// Waiting means that the alias is to be counted, and Counting that it is being counted.
	Waiting, Counting bool
	// SoFar is the number of objects of a running count.
	SoFar int64

	failed time.Time
}

// due reports whether the count, or the failed attempt, is too old.
func (u *Usage) due(now time.Time) bool {
	if u.Err != nil {
		return now.Sub(u.failed) >= failedAge
	}
	return now.Sub(u.Counted) >= usageAge
}

// usages are the usages of aliases by their locations. Services that replace each other share them:
// the next service continues a count that ended with the service before it.
type usages struct {
	maxObjects int64
	maxTime    time.Duration

	mu         sync.Mutex
	running    bool // a service counts
	all        map[storagedrivers.Location]*Usage
	unfinished map[storagedrivers.Location]resumable.Open // by storage
	trash      map[storagedrivers.Location]trashCounts    // by alias
}

func newUsages() *usages {
	return &usages{
		maxObjects: maxCounted, maxTime: maxCountTime,
		all: map[storagedrivers.Location]*Usage{}, unfinished: map[storagedrivers.Location]resumable.Open{},
		trash: map[storagedrivers.Location]trashCounts{},
	}
}

// of returns the usage of an alias. The caller holds mu.
func (u *usages) of(alias *item.Alias) *Usage {
	usage := u.all[alias.Location()]
	if usage == nil {
		usage = new(Usage)
		u.all[alias.Location()] = usage
	}
	return usage
}

// Usages returns the usages of the aliases, in the order of [Service.Aliases], as far as they are
// known. A count that ended with an earlier service continues in the background.
func (s *Service) Usages() []Usage {
	s.count()
	u := s.process.usages
	u.mu.Lock()
	defer u.mu.Unlock()
	aliases := s.Aliases()
	all := make([]Usage, len(aliases))
	for i, alias := range aliases {
		all[i] = *u.of(alias)
	}
	return all
}

// CountUsages counts the objects of the aliases in the background, one alias after the other: of
// those whose count is ten minutes old, or with again of all.
func (s *Service) CountUsages(again bool) {
	u := s.process.usages
	u.mu.Lock()
	for _, alias := range s.Aliases() {
		if usage := u.of(alias); !usage.Counting && (again || usage.due(s.now())) {
			usage.Waiting = true
		}
	}
	u.mu.Unlock()
	s.count()
}

// Unfinished returns the number of the unfinished resumable uploads of a storage, and their bytes,
// as of the last minutes.
func (s *Service) Unfinished(storage *storagedrivers.Storage) Count {
	u := s.process.usages
	u.mu.Lock()
	defer u.mu.Unlock()
	open := u.unfinished[storage.Location()]
	return Count{Objects: int64(open.Uploads), Bytes: open.Bytes}
}

func (u *usages) setUnfinished(storage *storagedrivers.Storage, open resumable.Open) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.unfinished[storage.Location()] = open
}

// count counts the waiting aliases in the background until the service is closed, unless a service
// counts already. The storages stay open meanwhile.
func (s *Service) count() {
	_, release, err := s.Acquire()
	if err != nil {
		return
	}
	u, aliases := s.process.usages, s.Aliases()
	alias := u.begin(aliases)
	if alias == nil {
		release()
		return
	}
	s.background("counting the items", func() {
		defer release()
		ctx := storagedrivers.WithOwner(s.health.ctx, countOwner)
		for ; alias != nil; alias = u.next(ctx, aliases) {
			s.countAlias(ctx, alias)
		}
	})
}

// begin returns the first alias to count; nil if none waits, or a service counts already. It
// forgets other aliases than these.
func (u *usages) begin(aliases []*item.Alias) *item.Alias {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running {
		return nil
	}
	kept := make(map[storagedrivers.Location]*Usage, len(aliases))
	for _, alias := range aliases {
		kept[alias.Location()] = u.of(alias)
	}
	u.all = kept
	return u.take(aliases)
}

// next returns the next alias to count; nil if none waits, or ctx has ended.
func (u *usages) next(ctx context.Context, aliases []*item.Alias) *item.Alias {
	u.mu.Lock()
	defer u.mu.Unlock()
	if ctx.Err() != nil {
		aliases = nil
	}
	return u.take(aliases)
}

// take marks the first waiting alias as counting, and returns it. The caller holds mu.
func (u *usages) take(aliases []*item.Alias) *item.Alias {
	u.running = false
	for _, alias := range aliases {
		if usage := u.of(alias); usage.Waiting {
			usage.Waiting, usage.Counting, usage.SoFar = false, true, 0
			u.running = true
			return alias
		}
	}
	return nil
}

// countAlias counts an alias within the bounds, and records the result. If ctx ends, the alias
// waits again.
func (s *Service) countAlias(ctx context.Context, alias *item.Alias) {
	u := s.process.usages
	bounded, cancel := context.WithTimeout(ctx, u.maxTime)
	defer cancel()
	var result Usage
	err := guard.Call(func() (err error) {
		result, err = u.walk(bounded, alias)
		return err
	})
	if errors.Is(bounded.Err(), context.DeadlineExceeded) && err != nil {
		result.AtLeast, err = true, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	usage := u.of(alias)
	usage.Counting = false
	switch {
	case ctx.Err() != nil:
		usage.Waiting = true
	case err != nil:
		usage.Err, usage.failed = err, s.now()
	default:
		result.Counted, result.Waiting = s.now(), usage.Waiting
		*usage = result
	}
}

// walk counts the objects of an alias.
func (u *usages) walk(ctx context.Context, alias *item.Alias) (Usage, error) {
	var usage Usage
	p := pacer{usages: u, alias: alias, last: time.Now()} //nolint:forbidigo // a duration depends on no other clock
	classify := func(info storagedrivers.Info) {
		switch {
		case naming.IsReserved(info.Key):
		case alias.IsVariant(info.Key):
			usage.Variants.add(info)
		default:
			usage.Items.add(info)
		}
	}
	err := p.each(ctx, alias.Key(""), classify)
	if err == nil && alias.HasRenditionFolder() {
		err = p.each(ctx, alias.RenditionRoot()+"/", usage.Renditions.add)
	}
	if err == nil && alias.HasTrashFolder() { // it may be left of an earlier configuration
		err = p.each(ctx, alias.TrashRoot()+"/", usage.Trash.add)
	}
	if errors.Is(err, errBound) {
		usage.AtLeast, err = true, nil
	}
	return usage, err
}

// errBound means that an alias has more objects than are counted.
var errBound = errors.New("too many objects to count")

// pacer lists the objects of an alias slowly: half of the time it leaves the storage and the
// processor to others.
type pacer struct {
	usages *usages
	alias  *item.Alias
	seen   int64
	last   time.Time // the end of the last pause
}

// each calls f for each object whose key begins with prefix. The error is errBound, or that of the
// storage or of ctx.
func (p *pacer) each(ctx context.Context, prefix string, f func(storagedrivers.Info)) error {
	for info, err := range p.alias.Storage.All(ctx, prefix) {
		if err != nil {
			return err
		}
		if p.seen == p.usages.maxObjects {
			return errBound
		}
		f(info)
		if p.seen++; p.seen%countStep == 0 {
			if err := p.pause(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause records the progress, and waits as long as the objects since the last pause have taken.
func (p *pacer) pause(ctx context.Context) error {
	p.usages.mu.Lock()
	p.usages.of(p.alias).SoFar = p.seen
	p.usages.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Since(p.last)):
	}
	p.last = time.Now() //nolint:forbidigo // as in walk
	return nil
}
