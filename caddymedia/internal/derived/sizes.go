package derived

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Size is the size of an image or of one of its renditions.
type Size struct {
	// Rendition is nil for the image itself.
	Rendition *item.Rendition
	URL       string
	// Width and Height in pixels, as shown; 0 for an SVG.
	Width, Height int
}

// Srcset returns the value of a srcset attribute: "<address> 320w, ..." in ascending order. It
// omits renditions without a configured width, and has each width once. An SVG is its address
// alone.
func Srcset(sizes []Size) string {
	sizes = slices.DeleteFunc(slices.Clone(sizes), func(s Size) bool { return s.Rendition != nil && s.Rendition.Box.Width == 0 })
	slices.SortStableFunc(sizes, func(a, b Size) int { return cmp.Compare(a.Width, b.Width) })
	sizes = slices.CompactFunc(sizes, func(a, b Size) bool { return a.Width == b.Width })
	candidates := make([]string, len(sizes))
	for i, size := range sizes {
		candidates[i] = size.URL
		if size.Width > 0 {
			candidates[i] = fmt.Sprintf("%s %dw", size.URL, size.Width)
		}
	}
	return strings.Join(candidates, ", ")
}

// Sizes returns the sizes of a stored image, first, and of its renditions. It omits renditions that
// the image cannot have.
//
// The error is fs.ErrNotExist if there is no such image, that of an image that cannot be read, of
// the storage, or of ctx.
func (m *Maker) Sizes(ctx context.Context, a *item.Alias, filename string) ([]Size, error) {
	if a.IsVariant(filename) || storagedrivers.ValidKey(filename) != nil {
		return nil, fs.ErrNotExist
	}
	image, err := a.Storage.Stat(ctx, a.Key(filename))
	if err != nil {
		return nil, err
	}
	itself := Size{URL: a.URL("", filename)}
	if naming.Extension(filename) == "svg" {
		return []Size{itself}, nil
	}
	info, err := m.header(ctx, a, filename, image)
	if err != nil {
		return nil, err
	}
	upright := info.UprightSize()
	itself.Width, itself.Height = upright.X, upright.Y
	sizes := []Size{itself}
	if !a.IsRendered(filename) {
		return sizes, nil
	}
	for i := range a.Renditions {
		r := &a.Renditions[i]
		if m.Images.Feasible(info, r.FileOf(filename, false).Output()) == nil {
			size := r.Box.View(upright.X, upright.Y).Size
			sizes = append(sizes, Size{r, a.RenditionURL("", r.Name, filename), size.X, size.Y})
		}
	}
	return sizes, nil
}

// header returns the properties in the header of an image.
func (m *Maker) header(ctx context.Context, a *item.Alias, filename string, image storagedrivers.Info) (imaging.Info, error) {
	if info, ok := m.Memory.headers.Get(headerKey(a, filename, image)); ok {
		return info, nil
	}
	object, err := a.Storage.OpenSeeker(ctx, image.Key)
	if err != nil {
		return imaging.Info{}, err
	}
	defer object.Close()
	info, err := imaging.ReadHeader(object, image.Size, naming.Extension(filename), a.Imaging)
	if err != nil {
		return imaging.Info{}, err
	}
	if object.Info.Same(image) {
		m.Memory.headers.Add(headerKey(a, filename, image), info)
	}
	return info, nil
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
	info, err := m.header(ctx, a, filename, image)
	if IsUnrenderable(err) {
		return false, nil
	}
	return info.HDR, err
}
