package item

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"strings"
	"sync"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// MayHaveVariant reports whether filename (relative to the alias) is the name of an image that may
// have a variant.
func (a *Alias) MayHaveVariant(filename string) bool {
	ext := naming.Extension(filename)
	return a.Kind == Image && a.Extensions[ext] && imaging.FormatOf(ext).HasVariant()
}

// IsVariant reports whether filename (relative to the alias) is the name of the variant of an
// image, which is not an item of its own.
func (a *Alias) IsVariant(filename string) bool {
	image, ok := strings.CutSuffix(filename, render.Suffix)
	return ok && a.MayHaveVariant(image)
}

// MayBeItem reports whether filename (relative to the alias) may be that of an item: the key is
// valid, and neither that of a variant nor reserved.
func (a *Alias) MayBeItem(filename string) bool {
	return storagedrivers.ValidKey(filename) == nil && storagedrivers.ValidKey(a.Key(filename)) == nil &&
		!a.IsVariant(filename) && !naming.IsReserved(filename)
}

// VariantState is the state of the variant of a stored image.
type VariantState string

// The states.
const (
	VariantCurrent VariantState = "current"
	VariantMissing VariantState = "missing"
	// VariantStale means that the variant is older than its image and belongs to an earlier one
	// of the name.
	VariantStale VariantState = "stale"
)

// VariantState returns the state of the variant of the image filename. The error is
// fs.ErrNotExist if there is no such image, or that of the storage.
func (a *Alias) VariantState(ctx context.Context, filename string) (VariantState, error) {
	pair, err := a.Pair(ctx, filename)
	return pair.State(), err
}

// Pair is a stored image with its variant.
type Pair struct {
	Image   storagedrivers.Info
	Variant storagedrivers.Info // zero if there is none
}

// Pair returns the image filename with its variant. The error is that of [Alias.VariantState].
func (a *Alias) Pair(ctx context.Context, filename string) (Pair, error) {
	image, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return Pair{}, err
	}
	webp, err := Stat(ctx, a.Storage, a.VariantKey(filename))
	return Pair{image, webp}, err
}

// State returns the state of the variant.
func (p Pair) State() VariantState {
	switch {
	case p.Variant.Key == "":
		return VariantMissing
	case p.Variant.ModTime.Before(p.Image.ModTime):
		return VariantStale
	default:
		return VariantCurrent
	}
}

// OpenVariant opens the variant of the image filename by open, a method of [Alias.Storage]. The
// error is fs.ErrNotExist if there is none, or a stale one.
func (a *Alias) OpenVariant(
	ctx context.Context, filename string, image storagedrivers.Info,
	open func(context.Context, string) (*storagedrivers.Object, error),
) (*storagedrivers.Object, error) {
	webp, err := open(ctx, a.VariantKey(filename))
	if err != nil {
		return nil, err
	}
	if (Pair{image, webp.Info}).State() == VariantStale {
		return nil, errors.Join(fs.ErrNotExist, webp.Close())
	}
	return webp, nil
}

// PutOptions returns the options of an item.
func (a *Alias) PutOptions(filename string) storagedrivers.PutOptions {
	opts := storagedrivers.PutOptions{CacheControl: a.CacheControl, ContentType: a.Types[naming.Extension(filename)]}
	if a.Overwrite {
		opts.Mode = storagedrivers.Overwrite
	}
	return opts
}

// VariantOptions returns the options of the variant of an image. They overwrite: an existing object
// of the name belongs to an earlier image.
func (a *Alias) VariantOptions(image storagedrivers.Info) storagedrivers.PutOptions {
	return storagedrivers.PutOptions{
		Mode: storagedrivers.Overwrite, CacheControl: a.CacheControl, NotBefore: image.ModTime,
	}
}

// Stat is Storage.Stat, but returns the zero Info if the object does not exist.
func Stat(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Info, error) {
	info, err := s.Stat(storagedrivers.WithoutCache(ctx), key)
	if errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Info{}, nil
	}
	return info, err
}

// Remove is Storage.Delete, but returns nil if the object does not exist.
func Remove(ctx context.Context, s *storagedrivers.Storage, key string) error {
	if err := s.Delete(ctx, key); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Uncovers reports whether the variant of an image is removed before the image is replaced: where
// the storage has its times in whole seconds. Within a second, the variant would not be older than
// the new image and would count as its own. A storage that commits both together leaves no such
// variant.
func (a *Alias) Uncovers(old storagedrivers.Info) bool {
	return old.Key != "" && old.ModTime.Nanosecond() == 0 && a.Storage.Features().Together != storagedrivers.Atomic
}

// VariantResult is the outcome of making a variant.
type VariantResult string

// The outcomes.
const (
	VariantMade   VariantResult = "made"
	VariantLarger VariantResult = "larger" // than its image, and kept
	VariantNone   VariantResult = "none"   // cannot be made
)

// recent numbers the items that this process stores, for all watches. Like the locks of items it
// outlasts a reload.
var recent = newStoredItems(1 << 16)

// storedItems numbers items that are stored, and knows the numbers of the last ones. An item is
// known by the hash of the name of its lock.
type storedItems struct {
	seed maphash.Seed

	mu      sync.Mutex
	last    uint64                // number
	ring    []uint64              // hashes, at their numbers modulo its length
	numbers map[uint64]storedItem // by hashes
}

// storedItem is the last generation of an item that this process has stored.
type storedItem struct {
	number, generation uint64
}

func newStoredItems(most int) *storedItems {
	return &storedItems{seed: maphash.MakeSeed(), ring: make([]uint64, most), numbers: map[uint64]storedItem{}}
}

func (s *storedItems) add(name string, info storagedrivers.Info) {
	hash := maphash.String(s.seed, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	oldest := &s.ring[s.last%uint64(len(s.ring))]
	if s.numbers[*oldest].number+uint64(len(s.ring)) == s.last { // it was not stored again
		delete(s.numbers, *oldest)
	}
	*oldest, s.numbers[hash] = hash, storedItem{s.last, s.generation(info)}
}

// generation returns a hash of what sets an object apart from others of its name.
func (s *storedItems) generation(info storagedrivers.Info) uint64 {
	return maphash.String(s.seed, cmp.Or(info.ETag, fmt.Sprint(info.Size, " ", info.ModTime.UnixNano())))
}

// find reports whether an item was stored after the number began, or the object of info last before
// it. An item that is not known any more counts as stored after it.
func (s *storedItems) find(name string, info storagedrivers.Info, began uint64) (before, after bool) {
	hash := maphash.String(s.seed, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	item, known := s.numbers[hash]
	if !known {
		return false, s.last-began >= uint64(len(s.ring))
	}
	return item.number <= began && item.generation == s.generation(info), item.number > began
}

// Watch knows which items of an alias this process has stored before it began and since, whatever
// their ModTime is. It costs nothing while it lasts.
type Watch struct {
	alias *Alias
	began uint64 // the number of the last item before it
}

// Watch begins a watch.
func (a *Alias) Watch() Watch {
	recent.mu.Lock()
	defer recent.mu.Unlock()
	return Watch{a, recent.last}
}

// Stored reports whether an item was stored since the watch began, or its object of info last
// before it; neither if this process has not stored it. The answer is exact for a caller that holds
// the lock of the item. After 65,536 more items, any unknown one counts as stored since.
func (w Watch) Stored(filename string, info storagedrivers.Info) (before, since bool) {
	return recent.find(w.alias.LockName(filename), info, w.began)
}

// Stored is called by a commit that has stored an item, while it holds the lock of the item.
func (a *Alias) Stored(filename string, info storagedrivers.Info) {
	recent.add(a.LockName(filename), info)
}
