package mediaapp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/options"
)

func (a *App) parseImageAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.ImageAliases)
	if err != nil {
		return err
	}
	return modules.Parse(d, "an image alias", media.Schemas.ImageAlias, alias, modules.Readers{
		"webp":      func(d *caddyfile.Dispenser) error { return parseWebP(d, alias) },
		"redirect":  func(d *caddyfile.Dispenser) error { return parseRedirect(d, &alias.AliasOptions) },
		"rendition": func(d *caddyfile.Dispenser) error { return parseRendition(d, alias) },
	})
}

func (a *App) parseFileAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.FileAliases)
	if err != nil {
		return err
	}
	return modules.Parse(d, "a file alias", media.Schemas.FileAlias, alias, modules.Readers{
		"redirect": func(d *caddyfile.Dispenser) error { return parseRedirect(d, &alias.AliasOptions) },
	})
}

// efforts are the words of the encoder's effort.
var efforts = []string{"fast", "normal", "small"}

// parseWebP reads a quality and an effort, both optional.
func parseWebP(d *caddyfile.Dispenser, alias *media.ImageAlias) error {
	alias.WebP = new(media.WebP)
	args := d.RemainingArgs()
	if len(args) > 2 {
		return d.ArgErr()
	}
	if len(args) == 2 || len(args) == 1 && !slices.Contains(efforts, args[0]) {
		quality, err := strconv.Atoi(args[0])
		if err != nil || quality < 1 || quality > 100 {
			return d.Errf("the quality of webp is a number from 1 to 100, not %q", args[0])
		}
		alias.WebP.Quality, args = quality, args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	if alias.WebP.Effort = args[0]; !slices.Contains(efforts, args[0]) {
		return d.Errf("the effort of webp: %q is none of %s", args[0], strings.Join(efforts, ", "))
	}
	return nil
}

// parseRedirect reads the kind of address, the public address and a lifetime.
func parseRedirect(d *caddyfile.Dispenser, alias *media.AliasOptions) error {
	const presigned, public = "presigned", "public"
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	redirect := &media.Redirect{To: args[0]}
	alias.Redirect = redirect
	rest := args[1:]
	switch {
	case redirect.To != presigned && redirect.To != public:
		return d.Errf("redirect is %s or %s, not %q", presigned, public, redirect.To)
	case redirect.To == public && len(rest) == 0:
		return d.ArgErr()
	case redirect.To == public:
		redirect.Base, rest = rest[0], rest[1:]
	}
	if len(rest) > 1 {
		return d.ArgErr()
	}
	if len(rest) == 1 {
		lifetime, err := caddy.ParseDuration(rest[0])
		if err != nil || lifetime <= 0 {
			return d.Errf("the lifetime of redirect is a duration such as 1h, not %q", rest[0])
		}
		redirect.Lifetime = options.Duration(lifetime)
	}
	return nil
}

// parseRendition reads a rendition: its name, the size and fit as arguments, and other options in a
// block.
func parseRendition(d *caddyfile.Dispenser, alias *media.ImageAlias) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 3 {
		return d.ArgErr()
	}
	name := args[0]
	if err := media.Names.Check(name); err != nil {
		return d.Errf("rendition %q: %w", name, err)
	}
	r, err := entry(d, "rendition", name, &alias.Renditions)
	if err != nil {
		return err
	}
	readers := modules.ReadersOf(media.Schemas.Rendition, r, nil)
	if len(args) > 1 {
		if err := setSize(r, args[1]); err != nil {
			return d.WrapErr(err)
		}
		delete(readers, "width")
		delete(readers, "height")
	}
	if len(args) > 2 {
		if r.Fit = args[2]; r.Fit != "contain" && r.Fit != "cover" {
			return d.Errf("the fit of a rendition is contain or cover, not %q", r.Fit)
		}
		delete(readers, "fit")
	}
	if err := modules.ParseBlock(d, "a rendition", readers); err != nil {
		return err
	}
	if err := media.Schemas.Rendition.CheckParsed(r); err != nil {
		return d.Errf("rendition %q: %w", name, err)
	}
	return nil
}

// setSize sets both sides from an argument such as 320x240.
func setSize(r *media.Rendition, size string) error {
	width, height, _ := strings.Cut(size, "x")
	var failed [2]error
	r.Width, failed[0] = strconv.Atoi(width)
	r.Height, failed[1] = strconv.Atoi(height)
	if errors.Join(failed[:]...) != nil || r.Width < 1 || r.Height < 1 {
		return fmt.Errorf("the size of a rendition is its width and height such as 320x240, not %q", size)
	}
	return nil
}
