// Package derived makes the images that are derived from stored ones, variants and renditions, on
// request and in upkeep. It does not store those that are made with an upload, which is the work of
// package upload, and decodes no pixels, which is that of package render. Begin with [Maker]: a
// request for a rendition calls [RenditionRequest.OpenRendition], and [Maker.MakeRendition] if it
// is not stored; upkeep calls [Maker.Renew] and [Maker.RenewRenditions], and removes the objects of
// [Orphans] and [OutdatedRenditions].
package derived

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Maker makes variants and renditions of stored images, on request and in upkeep.
type Maker struct {
	// Images decodes and encodes.
	Images *render.Maker
	// Now is the clock.
	Now func() time.Time
	// Observer records renditions.
	Observer RenditionObserver
	// Memory is what is known of stored images. Makers may share one.
	Memory *Memory

	making singleflight.Group // of renditions
}

// Memory is what was learned of the images that were used last.
type Memory struct {
	// attempts are the failures of making renditions, by location, settings and generation. Without
	// them, every request for one would fetch and decode its image again.
	attempts *lru.Cache[string, attempt]
	// headers are the properties in the headers of images, by location and generation.
	headers *lru.Cache[string, imaging.Info]
	// hashes are the ThumbHashes of images, by location and generation.
	hashes *lru.Cache[string, []byte]
}

// The number of renditions whose attempts are remembered, some 500 bytes each, and of images whose
// headers and ThumbHashes are, some 600 bytes each.
const (
	maxAttempts = 1000
	maxHeaders  = 10_000
)

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	attempts, err := lru.New[string, attempt](maxAttempts)
	headers, failed := lru.New[string, imaging.Info](maxHeaders)
	hashes, alsoFailed := lru.New[string, []byte](maxHeaders)
	if err := cmp.Or(err, failed, alsoFailed); err != nil {
		panic(err) // they fail only without a size
	}
	return &Memory{attempts, headers, hashes}
}

// RenditionObserver receives the outcomes of renditions.
type RenditionObserver interface {
	// Rendered is called for every rendition that is made, or cannot be made. took is the time to
	// make all renditions of the image at once, the wait in the queue included.
	Rendered(alias *item.Alias, rendition *item.Rendition, result RenditionResult, took time.Duration)
}

// rounds limits how often an object is read or made again because its image was replaced meanwhile.
const rounds = 5

// copySize is the size of the pieces in which an object is copied, in bytes.
const copySize = 256 << 10

// fetch copies an object to a staged one, so that it can be read again without a remote connection.
// It restarts if the object changes. The caller must close the copy.
func fetch(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Staged, storagedrivers.Info, error) {
	for round := 1; ; round++ {
		staged, info, err := fetchOnce(ctx, s, key)
		if !errors.Is(err, storagedrivers.ErrChanged) || round == rounds {
			return staged, info, err
		}
	}
}

func fetchOnce(ctx context.Context, s *storagedrivers.Storage, key string) (storagedrivers.Staged, storagedrivers.Info, error) {
	object, err := s.OpenSeeker(ctx, key)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	defer object.Close()
	staged, err := s.Stage(ctx)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	copied := false
	defer func() {
		if !copied { // or the driver has panicked
			_ = staged.Close() // the first error counts
		}
	}()
	buffer := make([]byte, copySize)
	if _, err := io.CopyBuffer(struct{ io.Writer }{staged}, struct{ io.Reader }{object}, buffer); err != nil {
		return nil, storagedrivers.Info{}, err
	}
	copied = true
	return staged, object.Info, nil
}

// makeOf makes outputs of the image or variant under key. It returns the generation of the object
// that they belong to.
func (m *Maker) makeOf(
	ctx context.Context, alias *item.Alias, key string, images *render.Maker, outputs ...render.Output,
) (image storagedrivers.Info, made []render.Made, err error) {
	staged, image, err := fetch(ctx, alias.Storage, key)
	if err != nil {
		return image, nil, err
	}
	defer staged.Close()
	info, err := imaging.CheckImage(staged, image.Size, naming.Extension(key), alias.Imaging)
	if err != nil {
		return image, nil, err
	}
	for _, o := range outputs {
		made = append(made, render.Made{Err: images.Feasible(info, o)})
	}
	if slices.ContainsFunc(made, func(m render.Made) bool { return m.Err == nil }) {
		made, err = images.Make(ctx, staged, info, outputs...)
	}
	return image, made, err
}
