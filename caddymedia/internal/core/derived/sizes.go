package derived

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Size is the size of an image or of one of its renditions.
type Size struct {
	// Rendition is nil for the image itself.
	Rendition *item.Rendition
	URL       string
	// Width and Height in pixels, as shown; 0 for an SVG that says none.
	Width, Height int
	// Scalable means that it is an SVG, which has any width.
	Scalable bool
}

// Srcset returns the value of a srcset attribute for an image, the first one of sizes, and its
// renditions: "<address> 320w, ..." in ascending order. It omits renditions without a configured
// width, and those that show another part of the image, and has each width once. An SVG is its
// address alone.
func Srcset(sizes []Size) string {
	image := sizes[0]
	sizes = slices.DeleteFunc(slices.Clone(sizes), func(s Size) bool {
		return s.Rendition != nil && (s.Rendition.Box.Width == 0 || !s.hasShape(image))
	})
	slices.SortStableFunc(sizes, func(a, b Size) int { return cmp.Compare(a.Width, b.Width) })
	sizes = slices.CompactFunc(sizes, func(a, b Size) bool { return a.Width == b.Width })
	candidates := make([]string, len(sizes))
	for i, size := range sizes {
		candidates[i] = size.URL
		if !size.Scalable {
			candidates[i] = fmt.Sprintf("%s %dw", size.URL, size.Width)
		}
	}
	return strings.Join(candidates, ", ")
}

// hasShape reports whether a rendition has the shape of its image, but for a pixel.
func (s Size) hasShape(image Size) bool {
	height := (2*int64(image.Height)*int64(s.Width) + int64(image.Width)) / (2 * int64(image.Width))
	width := (2*int64(image.Width)*int64(s.Height) + int64(image.Height)) / (2 * int64(image.Height))
	near := func(a int, b int64) bool { return max(int64(a)-b, b-int64(a)) <= 1 }
	return near(s.Height, height) || near(s.Width, width)
}

// Sizes returns the sizes of a stored image, first, and of its renditions. It omits renditions that
// the image cannot have. base is that of [item.Alias.URL].
//
// The error is fs.ErrNotExist if there is no such image, that of an image that cannot be read, of
// the storage, or of ctx.
func (m *Maker) Sizes(ctx context.Context, a *item.Alias, base, filename string) ([]Size, error) {
	if a.IsVariant(filename) || storagedrivers.ValidKey(filename) != nil {
		return nil, fs.ErrNotExist
	}
	image, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return nil, err
	}
	info, err := m.header(ctx, a, filename, image, false)
	if err != nil {
		return nil, err
	}
	return m.sizesOf(a, base, filename, info), nil
}

// sizesOf is [Maker.Sizes] for an image whose header is known.
func (m *Maker) sizesOf(a *item.Alias, base, filename string, info imaging.Info) []Size {
	upright := info.UprightSize()
	sizes := []Size{{URL: a.URL(base, filename), Width: upright.X, Height: upright.Y, Scalable: info.Format == imaging.SVG}}
	if !a.IsRendered(filename) {
		return sizes
	}
	for i := range a.Renditions {
		r := &a.Renditions[i]
		if m.Images.Feasible(info, r.FileOf(filename, false).Output()) == nil {
			size := r.Box.View(upright.X, upright.Y).Size
			sizes = append(sizes, Size{Rendition: r, URL: a.RenditionURL(base, r.Name, filename), Width: size.X, Height: size.Y})
		}
	}
	return sizes
}

// Facts are what a page needs of an image before it loads it, as the answers to clients have them.
type Facts struct {
	// Width and Height in pixels, as shown; 0 if an SVG says none.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Srcset is that of [Srcset].
	Srcset string `json:"srcset,omitempty"`
	// Sizes of the renditions, by their names.
	Sizes map[string]Pixels `json:"sizes,omitempty"`
	// ThumbHash in Base64; empty if the alias does not want it, or the image has none.
	ThumbHash string `json:"thumbhash,omitempty"`
}

// Pixels are the sides of a rendition in pixels.
type Pixels struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// FactsOf returns the facts of an image that was checked.
func (m *Maker) FactsOf(a *item.Alias, base, filename string, info imaging.Info, hash []byte) *Facts {
	sizes := m.sizesOf(a, base, filename, info)
	facts := &Facts{
		Width: sizes[0].Width, Height: sizes[0].Height, Srcset: Srcset(sizes),
		ThumbHash: base64.StdEncoding.EncodeToString(hash),
	}
	for _, size := range sizes[1:] {
		if facts.Sizes == nil {
			facts.Sizes = map[string]Pixels{}
		}
		facts.Sizes[size.Rendition.Name] = Pixels{size.Width, size.Height}
	}
	return facts
}

// StoredFacts returns the facts of a stored image, at the request of owner; nil if the alias does
// not want them, or the image cannot be read. For a list it reads at most the first 64 KiB of an
// image that is not remembered, and adds no ThumbHash. The error is that of the storage or of ctx.
func (m *Maker) StoredFacts(
	ctx context.Context, a *item.Alias, base string, image storagedrivers.Info, owner string, inList bool,
) (*Facts, error) {
	if a.Facts == item.NoFacts {
		return nil, nil
	}
	filename := a.Filename(image.Key)
	info, err := m.header(ctx, a, filename, image, inList)
	if err != nil {
		if IsUnrenderable(err) || errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	var hash []byte
	if a.Facts == item.FactsWithHash && !inList && info.Format.Decodable() {
		hash = m.thumbHash(ctx, a, filename, image, owner)
	}
	return m.FactsOf(a, base, filename, info, hash), nil
}

// hashTime bounds how long an answer waits for a ThumbHash.
const hashTime = 10 * time.Second

// thumbHash returns the ThumbHash of a stored image, of a decoding unless it is remembered. It is
// nil if none can be made now. A failure is not repeated for a while.
func (m *Maker) thumbHash(ctx context.Context, a *item.Alias, filename string, image storagedrivers.Info, owner string) []byte {
	name := headerKey(a, filename, image)
	if hash, ok := m.Memory.hashes.Get(name); ok {
		return hash
	}
	ctx, cancel := context.WithTimeout(ctx, hashTime)
	defer cancel()
	var hash []byte
	_ = m.attempt(ctx, name+" thumbhash", owner, func(ctx context.Context, maker *render.Maker) error {
		now, made, err := m.makeOf(ctx, a, image.Key, maker, render.Hash)
		if err == nil && made[0].Err == nil && now.Same(image) {
			hash = made[0].File
			m.Memory.hashes.Add(name, hash)
		}
		if err == nil {
			err = made[0].Err
		}
		return err
	}) // which is remembered by attempt
	return hash
}

// Remember keeps the facts of an image that was stored just now, so that they need not be read
// again.
func (m *Maker) Remember(a *item.Alias, filename string, image storagedrivers.Info, info imaging.Info, hash []byte) {
	name := headerKey(a, filename, image)
	m.Memory.headers.Add(name, info.Header())
	if hash != nil {
		m.Memory.hashes.Add(name, hash)
	}
}

// headSize is how much of an image is read for its header, in bytes.
const headSize = 64 << 10

// header returns the properties in the header of an image. If it is not in the first bytes, more
// are read, unless the image is one of a list.
func (m *Maker) header(ctx context.Context, a *item.Alias, filename string, image storagedrivers.Info, inList bool) (imaging.Info, error) {
	if info, ok := m.Memory.headers.Get(headerKey(a, filename, image)); ok {
		return info, nil
	}
	head, now, err := readHead(ctx, a.Storage, image)
	if err != nil {
		return imaging.Info{}, err
	}
	info, err := imaging.ReadHeader(bytes.NewReader(head), now.Size, naming.Extension(filename), a.Imaging)
	if IsUnrenderable(err) && now.Size > headSize && !inList {
		info, now, err = readHeader(ctx, a, filename, image)
	}
	if err == nil && now.Same(image) {
		m.Memory.headers.Add(headerKey(a, filename, image), info)
	}
	return info, err
}

// readHead returns the first bytes of an image.
func readHead(ctx context.Context, s *storagedrivers.Storage, image storagedrivers.Info) (head []byte, now storagedrivers.Info, err error) {
	r, now, err := s.Open(ctx, image.Key, storagedrivers.Range{Length: min(image.Size, headSize)})
	if err != nil {
		return nil, now, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	head, err = io.ReadAll(io.LimitReader(r, headSize))
	return head, now, err
}

// readHeader reads the header of an image wherever it is.
func readHeader(ctx context.Context, a *item.Alias, filename string, image storagedrivers.Info) (imaging.Info, storagedrivers.Info, error) {
	object, err := a.Storage.OpenSeeker(ctx, image.Key)
	if err != nil {
		return imaging.Info{}, image, err
	}
	defer object.Close()
	info, err := imaging.ReadHeader(object, object.Info.Size, naming.Extension(filename), a.Imaging)
	return info, object.Info, err
}

func headerKey(a *item.Alias, filename string, image storagedrivers.Info) string {
	return a.Location().Join(filename).String() + " " + item.Generation(image)
}

// IsHDR reports whether a stored image has a gain map, so that its variant does not show the same.
// The error is that of the storage.
func (m *Maker) IsHDR(ctx context.Context, a *item.Alias, filename string, image storagedrivers.Info) (bool, error) {
	if imaging.FormatOf(naming.Extension(filename)) != imaging.JPEG {
		return false, nil
	}
	info, err := m.header(ctx, a, filename, image, false)
	if IsUnrenderable(err) {
		return false, nil
	}
	return info.HDR, err
}
