package media

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Rendition is a named size of the images of an alias. No image is ever enlarged.
type Rendition struct {
	// The width of the box that the image is fitted into, in pixels, at most 16383. `width` or
	// `height` is required. Default: follows from the height.
	Width int `json:"width,omitempty" example:"320"`

	// The height of the box in pixels, at most 16383. Default: follows from the width.
	Height int `json:"height,omitempty" example:"240"`

	// Widths in pixels, in place of `width` and `height`. Each makes a rendition whose name is this
	// one's and the width: `w320` and `w640` for a rendition `w`. The other options are those of all.
	// Default: none.
	Widths []string `json:"widths,omitempty" example:"320"`

	// How the image is fitted into the box. `contain` shows the whole image inside the box. `cover`
	// fills the box, if both sides are set, and crops the image at its centre. Default: `contain`.
	Fit string `json:"fit,omitempty" option:"words=contain|cover"`

	// The format of the file. `same` is the format of the image (PNG for a GIF), or WebP for a client
	// that accepts it if the alias has `negotiate`. In `jpeg`, transparent parts become white. Only
	// WebP files may be animated; other formats show the first frame. Default: `same`.
	Format string `json:"format,omitempty" option:"words=same|webp|jpeg|png"`

	// The quality of lossy files, 1 to 100. Default: `80`.
	Quality int `json:"quality,omitempty" example:"80"`

	// Whether the rendition is made with the upload, which takes longer then. Otherwise it is made
	// at its first request. Images that are stored already get it at their first request too, or by
	// `caddy media variants`. Default: `false`.
	Eager bool `json:"eager,omitempty"`
}

// fitCover is the word of Fit that crops.
const fitCover = "cover"

// renditionFormats maps the words of formats; `same` is none.
var renditionFormats = map[string]imaging.Format{"webp": imaging.WebP, "jpeg": imaging.JPEG, "png": imaging.PNG}

// Check implements options.Checker.
func (r *Rendition) Check() error {
	switch {
	case max(r.Width, r.Height) > webp.MaxSide:
		return fmt.Errorf("width and height are from 1 to %d", webp.MaxSide)
	case len(r.Widths) > 0 && r.Width+r.Height > 0:
		return errors.New("widths take the place of width and height")
	case len(r.Widths) > 0 && r.Fit == fitCover:
		return errors.New("fit: cover needs a width and a height, not widths")
	case len(r.Widths) == 0 && r.Width == 0 && r.Height == 0:
		return errors.New("width or height is missing")
	}
	for i, width := range r.Widths {
		n, err := strconv.ParseUint(width, 10, 32)
		switch {
		case err != nil || n < 1 || n > webp.MaxSide || strconv.FormatUint(n, 10) != width:
			return fmt.Errorf("widths: they are numbers from 1 to %d, not %q", webp.MaxSide, width)
		case slices.Contains(r.Widths[:i], width):
			return fmt.Errorf("widths: %s is there twice", width)
		}
	}
	return checkQuality(r.Quality)
}

// sizes returns the renditions of an alias by their names: one for each of several widths. Some may
// not be checked yet. The error names one that two options make.
func (a *ImageAlias) sizes() (map[string]Rendition, error) {
	all := map[string]Rendition{}
	for _, name := range slices.Sorted(maps.Keys(a.Renditions)) {
		r := *cmp.Or(a.Renditions[name], new(Rendition)) // null, which is refused
		widths := r.Widths
		if r.Widths = nil; len(widths) == 0 {
			widths = []string{""} // its own
		}
		for _, width := range widths {
			if width != "" {
				r.Width, _ = strconv.Atoi(width) // it is checked
			}
			if _, twice := all[name+width]; twice {
				return nil, fmt.Errorf("renditions.%s: there is another rendition %q", name, name+width)
			}
			all[name+width] = r
		}
	}
	return all, nil
}

// maxRenditions is the most renditions of an alias.
const maxRenditions = 16

func (a *ImageAlias) checkRenditions() error {
	sizes, err := a.sizes()
	switch count := len(sizes); {
	case err != nil:
		return err
	case count > maxRenditions:
		return fmt.Errorf("renditions are at most %d in an alias, not %d", maxRenditions, count)
	case count > 0 && a.Prefix == "/":
		return errors.New("renditions need a prefix other than /, because they are stored outside of it")
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(a.Renditions)), slices.Sorted(maps.Keys(sizes))) {
		if err := Names.Check(name); err != nil {
			return fmt.Errorf("renditions.%s: rendition %q: %w", name, name, err)
		}
	}
	return a.Private.checkPublic(sizes)
}

// renditions returns the renditions sorted by name.
func (a *ImageAlias) renditions() []item.Rendition {
	sizes, _ := a.sizes() // they are checked
	all := make([]item.Rendition, 0, len(sizes))
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		r := sizes[name]
		all = append(all, item.Rendition{
			Name: name, Box: scale.Box{Width: r.Width, Height: r.Height, Cover: r.Fit == fitCover},
			Format: renditionFormats[r.Format], Quality: r.Quality, Eager: r.Eager,
		})
	}
	return all
}

// maxRenditionAge is the longest time that a client may keep a rendition without asking again. Its
// settings may change under the same address.
const maxRenditionAge = 24 * time.Hour
