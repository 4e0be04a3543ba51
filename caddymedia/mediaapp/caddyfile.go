package mediaapp

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { httpcaddyfile.RegisterGlobalOption("media", parseGlobal) }

// parseGlobal sets up the app from the global option. Syntax:
//
//	media {
//		cdn_base        <url>
//		token_lifetime  <duration>
//		health_interval <duration>
//		spool_folder    <path>
//		tokens          bolt [<path>] | redis [<url>] { ... } | memory
//		account         <api_key> <password_hash> {
//			aliases <alias...>
//		}
//		storage <name> {
//			driver             <name> [<args...>] {
//				...
//			}
//			sub_folder_format  <format>
//			overwrite_strategy append_time|overwrite
//			sanitize           on|off
//		}
//		image_alias <name> {
//			storage        <name>
//			prefix         <path>
//			cdn_base       <url>
//			cache_control  <value>
//			max_size       <size>
//			max_pixels     <n>
//			redirect       presigned [<lifetime>] | public <url> [<lifetime>]
//			svg            reject|keep|off
//			webp           [<quality> [fast|normal|small]]
//			negotiate      on|off
//			strip_metadata on|off
//		}
//		file_alias <name> {
//			storage       <name>
//			prefix        <path>
//			cdn_base      <url>
//			cache_control <value>
//			max_size      <size>
//			redirect      presigned [<lifetime>] | public <url> [<lifetime>]
//			extensions    <ext...>
//		}
//		limits {
//			max_body         <size>
//			max_uploads      <n>
//			max_upload_time  <duration>
//			max_files        <n>
//			max_fields       <n>
//			max_field_size   <size>
//			max_part_header  <size>
//			max_image_size   <size>
//			max_file_size    <size>
//			max_pixels       <n>
//			max_frames       <n>
//			max_frame_pixels <n>
//			max_side         <n>
//			max_chunk_size   <size>
//			image_workers    <n>
//			image_memory     <size>
//			image_queue      <n>
//			image_wait       <duration>
//			image_time       <duration>
//			max_open_items   <n>
//			login_failures   <n>
//			password_checks  <n>
//		}
//		downloads {
//			allow         <prefix...>
//			ports         <port...>
//			max_redirects <n>
//			timeout       <duration>
//		}
//	}
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
	return options.ParseBlock(d, "media", options.Readers{
		"cdn_base":        once("cdn_base", &a.CDNBase, readCDNBase),
		"token_lifetime":  once("token_lifetime", &a.TokenLifetime, options.ReadDuration),
		"health_interval": once("health_interval", &a.HealthInterval, options.ReadDuration),
		"spool_folder":    once("spool_folder", &a.SpoolFolder, options.ReadText),
		"tokens":          a.parseTokens,
		"account":         a.parseAccount,
		"storage":         a.parseStorage,
		"image_alias":     a.parseImageAlias,
		"file_alias":      a.parseFileAlias,
		"limits":          a.parseLimits,
		"downloads":       a.parseDownloads,
	}, "account", "storage", "image_alias", "file_alias")
}

// once returns a reader for an option that may be set only once in all media blocks.
func once[T comparable](name string, into *T, reader func(*T) options.Reader) options.Reader {
	return func(d *caddyfile.Dispenser) error {
		if *into != *new(T) {
			return d.Errf("option %q of media is given twice", name)
		}
		return reader(into)(d)
	}
}

func readCDNBase(into *string) options.Reader {
	return options.Checked(into, func(string) error {
		_, err := checkCDNBase(*into)
		return err
	})
}

// named adds a new entry. Its name is the only argument. noun is "storage" or "alias".
func named[T any](d *caddyfile.Dispenser, noun string, into *map[string]*T) (*T, error) {
	what := d.Val()
	var name string
	if !d.AllArgs(&name) {
		return nil, d.ArgErr()
	}
	if err := media.CheckName(noun, name); err != nil {
		return nil, d.WrapErr(err)
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

// parseModule reads a guest module from the current segment: its name and its options. noun is what
// modules of the namespace are.
func parseModule(d *caddyfile.Dispenser, noun, namespace, nameKey string) (json.RawMessage, error) {
	if !d.NextArg() {
		return nil, d.ArgErr()
	}
	name := d.Val()
	if _, err := caddy.GetModule(namespace + "." + name); err != nil {
		return nil, d.Errf("unknown %s %q; there are %s", noun, name, modulesOf(namespace))
	}
	module, err := caddyfile.UnmarshalModule(d, namespace+"."+name)
	if err != nil {
		return nil, err
	}
	return caddyconfig.JSONModuleObject(module, nameKey, name, nil), nil
}

// modulesOf returns the names of the modules of a namespace, for an error.
func modulesOf(namespace string) string {
	modules := caddy.GetModules(namespace)
	names := make([]string, len(modules))
	for i, info := range modules {
		names[i] = info.ID.Name()
	}
	return strings.Join(names, ", ")
}

func (a *App) parseTokens(d *caddyfile.Dispenser) (err error) {
	if a.TokensRaw != nil {
		return d.Err(`option "tokens" of media is given twice`)
	}
	a.TokensRaw, err = parseModule(d, "token store", "media.tokens", "store")
	return err
}

func (a *App) parseAccount(d *caddyfile.Dispenser) error {
	var key, hash string
	if !d.AllArgs(&key, &hash) {
		return d.ArgErr()
	}
	if err := media.CheckAPIKey(key); err != nil {
		return d.WrapErr(err)
	}
	if !options.HasPlaceholder(hash) {
		if err := CheckHash(hash); err != nil {
			return d.Errf("account %q: %w", key, err)
		}
	}
	account, err := entry(d, "account", key, &a.Accounts)
	if err != nil {
		return err
	}
	account.PasswordHash = hash
	return options.ParseBlock(d, "an account", options.Readers{"aliases": options.ReadTexts(&account.Aliases)}) // the hash is given
}

func (a *App) parseStorage(d *caddyfile.Dispenser) error {
	s, err := named(d, "storage", &a.Storages)
	if err != nil {
		return err
	}
	return storageOptions.Parse(d, "a storage", s, options.Readers{
		"driver": func(d *caddyfile.Dispenser) (err error) {
			s.DriverRaw, err = parseModule(d, "driver", "media.storages", "name")
			return err
		},
	})
}

func (a *App) parseImageAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.ImageAliases)
	if err != nil {
		return err
	}
	return imageAliasOptions.Parse(d, "an image alias", alias,
		options.Readers{"webp": alias.parseWebP, "redirect": alias.parseRedirect})
}

func (a *ImageAlias) parseWebP(d *caddyfile.Dispenser) error {
	a.WebP = new(WebP)
	args := d.RemainingArgs()
	if len(args) > 2 {
		return d.ArgErr()
	}
	if len(args) > 0 {
		quality, err := strconv.Atoi(args[0])
		if err != nil || quality < 1 || quality > 100 {
			return d.Errf("the quality of webp is a number from 1 to 100, not %q", args[0])
		}
		a.WebP.Quality = quality
	}
	if len(args) > 1 {
		effort, err := webp.ParseEffort(args[1])
		if err != nil {
			return d.Errf("the effort of webp: %v", err)
		}
		a.WebP.Effort = string(effort)
	}
	return nil
}

func (a *App) parseFileAlias(d *caddyfile.Dispenser) error {
	alias, err := named(d, "alias", &a.FileAliases)
	if err != nil {
		return err
	}
	return fileAliasOptions.Parse(d, "a file alias", alias,
		options.Readers{"redirect": alias.parseRedirect, "extensions": alias.parseExtensions})
}

func (a *FileAlias) parseExtensions(d *caddyfile.Dispenser) error {
	if err := options.ReadTexts(&a.Extensions)(d); err != nil {
		return err
	}
	for _, ext := range a.Extensions {
		if err := media.CheckExtension(ext); err != nil && !options.HasPlaceholder(ext) {
			return d.Errf("extensions: %w", err)
		}
	}
	return nil
}

func (a *App) parseLimits(d *caddyfile.Dispenser) error {
	return parseOnce(d, &a.Limits, limitsOptions)
}

func (a *App) parseDownloads(d *caddyfile.Dispenser) error {
	return parseOnce(d, &a.Downloads, downloadsOptions)
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
	return schema.Parse(d, name, *into, nil)
}

// Interface guards
var _ caddyfile.Unmarshaler = (*App)(nil)
