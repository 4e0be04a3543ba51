package mediaapp

import (
	"strconv"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

func (a *App) parseImageAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.ImageAliases)
	if err != nil {
		return err
	}
	err = imageAliasOptions.Parse(d, "an image alias", alias, options.Readers{
		"prefix": alias.parsePrefix, "webp": alias.parseWebP, "redirect": alias.parseRedirect,
		"formats": alias.parseFormats, "rendition": alias.parseRendition,
	})
	if err != nil {
		return err
	}
	if err := media.CheckRenditions(len(alias.Renditions), alias.Prefix == "/"); err != nil {
		return d.WrapErr(err)
	}
	if err := media.CheckNegotiate(alias.Negotiate, alias.WebP != nil); err != nil {
		return d.WrapErr(err)
	}
	return nil
}

func (o *AliasOptions) parsePrefix(d *caddyfile.Dispenser) error {
	return options.Checked(&o.Prefix, func(string) error {
		_, err := media.CleanPrefix(o.Prefix)
		return err
	})(d)
}

func (a *ImageAlias) parseWebP(d *caddyfile.Dispenser) error {
	a.WebP = new(WebP)
	args := d.RemainingArgs()
	if len(args) > 2 {
		return d.ArgErr()
	}
	if len(args) == 2 || len(args) == 1 && !isEffort(args[0]) {
		quality, err := strconv.Atoi(args[0])
		if err != nil || quality < 1 || quality > 100 {
			return d.Errf("the quality of webp is a number from 1 to 100, not %q", args[0])
		}
		a.WebP.Quality, args = quality, args[1:]
	}
	if len(args) > 0 {
		effort, err := webp.ParseEffort(args[0])
		if err != nil {
			return d.Errf("the effort of webp: %v", err)
		}
		a.WebP.Effort = string(effort)
	}
	return nil
}

func isEffort(word string) bool {
	_, err := webp.ParseEffort(word)
	return word != "" && err == nil
}

func (a *App) parseFileAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.FileAliases)
	if err != nil {
		return err
	}
	return fileAliasOptions.Parse(d, "a file alias", alias, options.Readers{
		"prefix": alias.parsePrefix, "redirect": alias.parseRedirect, "extensions": alias.parseExtensions,
	})
}

func (a *ImageAlias) parseFormats(d *caddyfile.Dispenser) error {
	return parseChecked(d, "formats", &a.Formats, media.CheckFormat)
}

func (a *FileAlias) parseExtensions(d *caddyfile.Dispenser) error {
	return parseChecked(d, "extensions", &a.Extensions, media.CheckExtension)
}

// parseChecked parses a list. It checks each text that has no placeholder.
func parseChecked(d *caddyfile.Dispenser, name string, into *[]string, check func(string) error) error {
	if err := options.ReadTexts(into)(d); err != nil {
		return err
	}
	for _, text := range *into {
		if err := check(text); err != nil && !options.HasPlaceholder(text) {
			return d.Errf("%s: %w", name, err)
		}
	}
	return nil
}
