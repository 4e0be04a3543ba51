package derived

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/storagedrivers"
)

// thumbnail has the settings of all thumbnails.
var thumbnail = aliases.Rendition{Name: "thumbnail", Box: scale.Box{Width: 320, Height: 320}, Quality: 70}

// Thumbnail is a small still image for a list of items, made of a stored image. It is kept in memory
// for a while, and not stored.
type Thumbnail struct {
	// Info describes the thumbnail. Its time is that of the image, its ETag belongs to a generation of
	// the image.
	Info storagedrivers.Info
	// File are its bytes, which must not be changed.
	File []byte
}

// ThumbnailRequest asks for the thumbnail of a stored image.
type ThumbnailRequest struct {
	Alias *aliases.Alias
	// Filename of the image, relative to the alias.
	Filename string
	// Stored is the image with its variant, as far as it has one.
	Stored aliases.Pair
	// Owner shares the bounded work, such as the address of the client.
	Owner string
	// Hold, if set, keeps the storage open until release is called, for work that ends a little later
	// than its callers.
	Hold func() (release func(), err error)
}

// Source returns the object of which the thumbnail is made: the smaller one of the image and a
// current variant.
func (r *ThumbnailRequest) Source() storagedrivers.Info {
	if r.Stored.State() == aliases.VariantCurrent && r.Stored.Variant.Size < r.Stored.Image.Size {
		return r.Stored.Variant
	}
	return r.Stored.Image
}

// fileOf returns the file of the thumbnail of an image. Without an encoder for WebP it is a JPEG, or a
// PNG of an image that may have alpha.
func (m *Maker) fileOf(r *ThumbnailRequest) aliases.RenditionFile {
	file := thumbnail.FileOf(r.Filename, m.Images.EncodesWebP())
	if file.Format != imaging.JPEG && !m.Images.EncodesWebP() {
		file.Format = imaging.PNG
	}
	return file
}

// thumbnailName identifies the thumbnail of a generation of an image.
func thumbnailName(r *ThumbnailRequest, file aliases.RenditionFile, image storagedrivers.Info) string {
	return r.Alias.Storage.Location().Join(r.Alias.RenditionKey(r.Filename, file, image)).String()
}

// Thumbnail returns the thumbnail of an image. Concurrent calls for one thumbnail make it once. The
// work ends when its callers have left.
//
// The error is that of [Maker.MakeRendition].
func (m *Maker) Thumbnail(ctx context.Context, r *ThumbnailRequest) (*Thumbnail, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	file := m.fileOf(r)
	name := thumbnailName(r, file, r.Stored.Image)
	for round := 1; ; round++ {
		if found, ok := thumbnails.get(name); ok {
			return found, nil
		}
		made, err := m.once(ctx, "thumbnail "+name, func() (any, error) {
			if r.Hold != nil {
				release, err := r.Hold()
				if err != nil {
					return nil, err
				}
				defer release()
			}
			return m.makeThumbnail(ctx, r, file)
		})
		if err == nil {
			return made.(*Thumbnail), nil
		}
		if !errors.Is(err, context.Canceled) || ctx.Err() != nil || round == rounds {
			return nil, err
		}
		// The first caller has left.
	}
}

// makeThumbnail is Thumbnail for one caller.
func (m *Maker) makeThumbnail(ctx context.Context, r *ThumbnailRequest, file aliases.RenditionFile) (made *Thumbnail, err error) {
	output := file.Output()
	output.Still, output.Effort = true, webp.Fast
	source, image := r.Source(), r.Stored.Image
	err = m.attempt(ctx, thumbnailName(r, file, image), r.Owner, func(ctx context.Context, maker *render.Maker) error {
		read, files, err := m.makeOf(ctx, r.Alias, source.Key, maker, output)
		if err != nil {
			return err
		}
		if files[0].Err != nil {
			return files[0].Err
		}
		if source.Key == image.Key {
			image = read // it may have been replaced meanwhile
		}
		made = newThumbnail(file, image, files[0].File)
		thumbnails.add(thumbnailName(r, file, image), made)
		return nil
	})
	return made, err
}

// newThumbnail returns the thumbnail of a generation of an image.
func newThumbnail(file aliases.RenditionFile, image storagedrivers.Info, content []byte) *Thumbnail {
	info := storagedrivers.Info{
		Key: image.Key, Size: int64(len(content)), ModTime: image.ModTime,
		ContentType: file.ContentType(),
	}
	if image.ETag != "" {
		info.ETag = fmt.Sprintf(`"%s-%s"`, aliases.Generation(image), file.Fingerprint())
	}
	return &Thumbnail{Info: info, File: content}
}

// thumbnails are those used last. They outlast a reload.
var thumbnails = newThumbnailCache(32 << 20)

// thumbnailCost is about the memory of a thumbnail besides its file, in bytes.
const thumbnailCost = 1 << 10

// thumbnailCache has the thumbnails used last, up to a number of bytes.
type thumbnailCache struct {
	mu    sync.Mutex
	used  *simplelru.LRU[string, *Thumbnail]
	bytes int
	most  int
}

func newThumbnailCache(most int) *thumbnailCache {
	c := &thumbnailCache{most: most}
	used, err := simplelru.NewLRU(math.MaxInt, func(_ string, t *Thumbnail) { c.bytes -= cost(t) })
	if err != nil {
		panic(err) // it fails only without a size
	}
	c.used = used
	return c
}

func cost(t *Thumbnail) int { return len(t.File) + thumbnailCost }

func (c *thumbnailCache) get(name string) (*Thumbnail, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used.Get(name)
}

func (c *thumbnailCache) add(name string, t *Thumbnail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used.Remove(name)
	c.used.Add(name, t)
	c.bytes += cost(t)
	for c.bytes > c.most {
		c.used.RemoveOldest()
	}
}
