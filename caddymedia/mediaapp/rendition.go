package mediaapp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Rendition is a named size of the pictures of an alias. No picture is ever enlarged.
type Rendition struct {
	// The width of the box that the picture is fitted into, in pixels, at most 16383. `width` or
	// `height` must be set. Default: as wide as the height makes it.
	Width int `json:"width,omitempty" example:"320"`

	// The height of the box in pixels, at most 16383. Default: as high as the width makes it.
	Height int `json:"height,omitempty" example:"240"`

	// How the picture fits into the box: `contain` shows the whole picture inside it, `cover`
	// fills the box and crops the picture at its centre. Without a width or a height, `cover`
	// has no effect. Default: `contain`.
	Fit string `json:"fit,omitempty" option:"words=contain|cover"`

	// The format of the file: `same` is that of the picture, or WebP for a client that accepts it
	// if the alias has `negotiate`. Transparent parts are white in `jpeg`. Only WebP files may be
	// animated; the others show the first frame. Default: `same`.
	Format string `json:"format,omitempty" option:"words=same|webp|jpeg|png"`

	// The quality of lossy files, 1 to 100. Default: `80`.
	Quality int `json:"quality,omitempty" example:"80"`

	// Whether the rendition is made with the upload, which then takes longer. Otherwise it is made
	// when it is first requested. Pictures that are stored already get it on request too, or by
	// `caddy media variants`. Default: `false`.
	Eager bool `json:"eager,omitempty"`
}

// The words of options.
const (
	fitContain = "contain"
	fitCover   = "cover"
)

// formats maps the words of formats; `same` is none.
var formats = map[string]imaging.Format{"webp": imaging.WebP, "jpeg": imaging.JPEG, "png": imaging.PNG}

// rendition returns a rendition of the service.
func (r *Rendition) rendition(name string) ingest.Rendition {
	return ingest.Rendition{
		Name: name, Box: scale.Box{Width: r.Width, Height: r.Height, Cover: r.Fit == fitCover},
		Format: formats[r.Format], Quality: r.Quality, Eager: r.Eager,
	}
}

// renditions returns the renditions of an alias, sorted by name. They must be expanded.
func (a *ImageAlias) renditions() ([]ingest.Rendition, error) {
	var all []ingest.Rendition
	for _, name := range slices.Sorted(maps.Keys(a.Renditions)) {
		r := a.Renditions[name].rendition(name)
		if err := errors.Join(media.CheckName("rendition", name), media.CheckRendition(&r)); err != nil {
			return nil, fmt.Errorf("renditions.%s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// parseRendition reads a rendition: its name, the size and fit as arguments, and other options in a
// block.
func (a *ImageAlias) parseRendition(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 3 {
		return d.ArgErr()
	}
	name := args[0]
	if err := media.CheckName("rendition", name); err != nil {
		return d.WrapErr(err)
	}
	r, err := entry(d, "rendition", name, &a.Renditions)
	if err != nil {
		return err
	}
	readers := renditionOptions.Readers(r, nil)
	if len(args) > 1 {
		if err := r.setSize(args[1]); err != nil {
			return d.WrapErr(err)
		}
		delete(readers, "width")
		delete(readers, "height")
	}
	if len(args) > 2 {
		if r.Fit = args[2]; r.Fit != fitContain && r.Fit != fitCover {
			return d.Errf("the fit of a rendition is %s or %s, not %q", fitContain, fitCover, r.Fit)
		}
		delete(readers, "fit")
	}
	if err := options.ParseBlock(d, "a rendition", readers); err != nil {
		return err
	}
	checked := r.rendition(name)
	if err := media.CheckRendition(&checked); err != nil {
		return d.Errf("rendition %q: %w", name, err)
	}
	return nil
}

// setSize sets both sides from an argument such as 320x240.
func (r *Rendition) setSize(size string) error {
	width, height, _ := strings.Cut(size, "x")
	var failed [2]error
	r.Width, failed[0] = strconv.Atoi(width)
	r.Height, failed[1] = strconv.Atoi(height)
	if errors.Join(failed[:]...) != nil || r.Width < 1 || r.Height < 1 {
		return fmt.Errorf("the size of a rendition is its width and height such as 320x240, not %q", size)
	}
	return nil
}
