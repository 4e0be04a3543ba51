package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { httpcaddyfile.RegisterGlobalOption("media", parseGlobal) }

// parseGlobal sets up the app from the global option. "All options" in
// caddymedia/docs/configuration.md is its syntax.
//
// Several blocks are read as one, so that imported files can each add to it.
func parseGlobal(d *caddyfile.Dispenser, existing any) (any, error) {
	app := new(App)
	if before, ok := existing.(httpcaddyfile.App); ok {
		if err := json.Unmarshal(before.Value, app); err != nil {
			return nil, d.WrapErr(err)
		}
	}
	if err := app.UnmarshalCaddyfile(d); err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "media", Value: caddyconfig.JSON(app, nil)}, nil
}

// UnmarshalCaddyfile sets up the app from Caddyfile tokens. The syntax is that of the global
// option.
func (a *App) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // media
	if d.NextArg() {
		return d.ArgErr()
	}
	custom := modules.Readers{
		"tokens":      a.parseTokens,
		"account":     a.parseAccount,
		"storage":     a.parseStorage,
		"image_alias": a.parseImageAlias,
		"file_alias":  a.parseFileAlias,
		"limits":      a.parseLimits,
		"downloads":   a.parseDownloads,
		"resumable":   a.parseResumable,
	}
	settings := media.Schemas.Settings
	for _, given := range settings.Lines(&a.Settings) { // in an earlier block
		name := given.Words[0]
		custom[name] = func(d *caddyfile.Dispenser) error {
			return d.Errf("option %q of media is given twice", name)
		}
	}
	return modules.Parse(d, "media", settings, &a.Settings, custom, "account", "storage", "image_alias", "file_alias")
}

// named adds a new entry. Its name is the only argument. noun is "storage" or "alias".
func named[T any](d *caddyfile.Dispenser, noun string, into *map[string]*T) (*T, error) {
	what := d.Val()
	var name string
	if !d.AllArgs(&name) {
		return nil, d.ArgErr()
	}
	if err := media.Names.Check(name); err != nil {
		return nil, d.Errf("%s %q: %w", noun, name, err)
	}
	return entry(d, what, name, into)
}

func entry[T any](d *caddyfile.Dispenser, what, name string, into *map[string]*T) (*T, error) {
	if (*into)[name] != nil {
		return nil, d.Errf("%s %q is given twice", what, name)
	}
	if *into == nil {
		*into = map[string]*T{}
	}
	(*into)[name] = new(T)
	return (*into)[name], nil
}

func (a *App) parseTokens(d *caddyfile.Dispenser) (err error) {
	if a.TokensRaw != nil {
		return d.Err(`option "tokens" of media is given twice`)
	}
	a.TokensRaw, err = parseModule(d, "token store", modules.StoreNamespace, "store")
	return err
}

func (a *App) parseAccount(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return d.ArgErr()
	}
	key, hash := args[0], strings.Join(args[1:], "")
	if err := media.APIKeys.Check(key); err != nil {
		return d.Errf("account %q: %w", key, err)
	}
	if len(args) == 2 && !options.HasPlaceholder(hash) {
		if err := CheckHash(hash); err != nil {
			return d.Errf("account %q: %w", key, err)
		}
	}
	account, err := entry(d, "account", key, &a.Accounts)
	if err != nil {
		return err
	}
	account.PasswordHash = hash
	err = modules.Parse(d, "an account", media.Schemas.Account, account, modules.Readers{"password_hash": nil}) // it is given
	if err != nil {
		return err
	}
	checked := map[string]*media.Account{key: account}
	if account.Trusts() { // only one account may; each other one is checked alone, because there may be thousands
		checked = a.Accounts
	}
	if err := (&media.Config{Accounts: checked}).CheckAccounts(); err != nil {
		return d.WrapErr(err)
	}
	if account.Trusts() && hash != "" { // which may be a placeholder
		return d.Errf("account %q: password_hash: an account with trust or trust_header has no password", key)
	}
	return nil
}

func (a *App) parseStorage(d *caddyfile.Dispenser) error {
	s, err := named(d, "storage", &a.Storages)
	if err != nil {
		return err
	}
	name := d.Val()
	err = modules.Parse(d, "a storage", media.Schemas.Storage, &s.Storage, modules.Readers{
		"driver": func(d *caddyfile.Dispenser) (err error) {
			s.DriverRaw, err = parseModule(d, "driver", modules.DriverNamespace, "name")
			return err
		},
	})
	if err != nil {
		return err
	}
	if err := s.checkDriver(); err != nil {
		return d.Errf("storage %q: %w", name, err)
	}
	return nil
}

func (a *App) parseLimits(d *caddyfile.Dispenser) error {
	return parseOnce(d, &a.Limits, media.Schemas.Limits)
}

func (a *App) parseDownloads(d *caddyfile.Dispenser) error {
	return parseOnce(d, &a.Downloads, media.Schemas.Downloads)
}

const resumableOff = "off"

// parseResumable reads the word "off", or a block of options.
func (a *App) parseResumable(d *caddyfile.Dispenser) error {
	if a.Resumable != nil {
		return d.Err(`option "resumable" of media is given twice`)
	}
	a.Resumable = new(media.Resumable)
	args := d.RemainingArgs()
	switch {
	case len(args) > 1:
		return d.ArgErr()
	case len(args) == 0:
		return modules.Parse(d, "resumable", media.Schemas.Resumable, a.Resumable, modules.Readers{resumableOff: nil}) // it is the argument
	case args[0] != resumableOff:
		return d.Errf("resumable is %s or has a block of options, not %q", resumableOff, args[0])
	}
	a.Resumable.Off = true
	return modules.ParseBlock(d, "resumable off", nil)
}

// parseOnce reads a block of options that may be set only once.
func parseOnce[T any](d *caddyfile.Dispenser, into **T, schema *options.Schema) error {
	name := d.Val()
	if *into != nil {
		return d.Errf("option %q of media is given twice", name)
	}
	*into = new(T)
	if d.NextArg() {
		return d.ArgErr()
	}
	return modules.Parse(d, name, schema, *into, nil)
}

// Interface guards
var _ caddyfile.Unmarshaler = (*App)(nil)

func (a *App) parseImageAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.ImageAliases)
	if err != nil {
		return err
	}
	return modules.Parse(d, "an image alias", media.Schemas.ImageAlias, alias, modules.Readers{
		"webp":      func(d *caddyfile.Dispenser) error { return parseWebP(d, alias) },
		"redirect":  func(d *caddyfile.Dispenser) error { return parseRedirect(d, &alias.AliasOptions) },
		"rendition": func(d *caddyfile.Dispenser) error { return parseRendition(d, alias) },
		"check":     func(d *caddyfile.Dispenser) error { return parseCheck(d, &alias.AliasOptions) },
	})
}

func (a *App) parseFileAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.FileAliases)
	if err != nil {
		return err
	}
	return modules.Parse(d, "a file alias", media.Schemas.FileAlias, alias, modules.Readers{
		"redirect": func(d *caddyfile.Dispenser) error { return parseRedirect(d, &alias.AliasOptions) },
		"check":    func(d *caddyfile.Dispenser) error { return parseCheck(d, &alias.AliasOptions) },
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

// parseCheck reads a check: its name, and the program in its block; or `clamd` or `http` and the
// address of the program, where the first word is the name too.
func parseCheck(d *caddyfile.Dispenser, alias *media.AliasOptions) error {
	args := d.RemainingArgs()
	if len(args) == 0 || len(args) > 2 {
		return d.ArgErr()
	}
	name := args[0]
	if err := media.Names.Check(name); err != nil {
		return d.Errf("check %q: %w", name, err)
	}
	c, err := entry(d, "check", name, &alias.Checks)
	if err != nil {
		return err
	}
	readers := modules.ReadersOf(media.Schemas.Check, c, nil)
	if len(args) == 2 {
		program := map[string]*string{"clamd": &c.Clamd, "http": &c.HTTP}[name]
		if program == nil {
			return d.Errf("a check with an address is clamd or http, not %q", name)
		}
		*program = args[1]
		delete(readers, "clamd")
		delete(readers, "http")
	}
	if err := modules.ParseBlock(d, "a check", readers, "header"); err != nil {
		return err
	}
	if err := media.Schemas.Check.CheckParsed(c); err != nil {
		return d.Errf("check %q: %w", name, err)
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
		for _, other := range []string{"width", "height", "widths"} {
			delete(readers, other)
		}
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

// checkOption returns an error if an alias or resumable uploads in the global option media have an
// unknown storage, or an account an unknown alias. Only the directives of sites can check this:
// several blocks make up the option.
func checkOption(h httpcaddyfile.Helper) error {
	option, ok := h.Option("media").(httpcaddyfile.App)
	if !ok {
		return nil
	}
	var c Config
	if err := json.Unmarshal(option.Value, &c); err != nil {
		return err
	}
	c.SetDefaults()
	config := media.Config{ImageAliases: c.ImageAliases, FileAliases: c.FileAliases, Accounts: c.Accounts}
	for name := range c.Storages {
		config.Storages = append(config.Storages, media.Storage{Name: name})
	}
	if c.Resumable != nil {
		config.Resumable = *c.Resumable
	}
	return config.CheckReferences(func(name string) bool { return !options.HasPlaceholder(name) })
}
