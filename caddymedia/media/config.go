package media

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config is the configuration of a Service. Tokens is required, and Comparer if there are accounts.
// The comments of its options are their help for administrators.
type Config struct {
	Settings

	// Accounts that may log in, by API key.
	Accounts map[string]*Account
	// Storages hold the items.
	Storages []Storage
	// ImageAliases and FileAliases by name. No two of them may share a folder.
	ImageAliases map[string]*ImageAlias
	FileAliases  map[string]*FileAlias
	// Limits of requests.
	Limits Limits
	// Downloads are the options of [Service.DownloadImage] and [Service.DownloadFile].
	Downloads Downloads
	// Resumable are the options of resumable uploads.
	Resumable Resumable

	// Tokens stores tokens. It is closed with the service.
	Tokens tokens.Store
	// Comparer compares passwords with the hashes of accounts.
	Comparer tokens.Comparer
	// FakeHash is compared with if there are no accounts.
	FakeHash []byte
	// Process has what the services of a process share. Default: its own.
	Process *Process
	// Client returns the address of the client for whom Go code stores items, from the context of
	// the call. Default: none is known.
	Client func(context.Context) string
	// Previous is the service that this one replaces, if any.
	Previous *Service
	// Observer records events. Default: none.
	Observer Observer
	// Log receives details that callers do not see. Default: nothing is logged.
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Settings are the options of the app that have one value.
type Settings struct {
	// The start of public addresses, such as `https://cdn.example.com`. An alias may have its own.
	// Default: the scheme and host of the upload request, in the panel its own, and none in templates.
	CDNBase string `json:"cdn_base,omitempty" option:"address" example:"https://cdn.example.com"`

	// How long items that are deleted or replaced can be had back, in all aliases, from `1m` to
	// `3650d`, or `off`. With `locked` behind the time, nobody removes them before. An alias may have
	// its own. Default: `off`, they are removed for good.
	Trash string `json:"trash,omitempty" option:"joined" example:"14d"`

	// The origins of pages on other sites that may use the service in a browser:
	// `https://www.example.com`, or `*` for all. Such pages need a token or a ticket; cookies are
	// never accepted. Default: none.
	CORS []string `json:"cors,omitempty" example:"https://www.example.com"`

	// The lifetime of a token. Default: `24h`.
	TokenLifetime options.Duration `json:"token_lifetime,omitempty"`

	// The keys that sign the addresses of private items, texts of 32 bytes or more each, which are
	// taken as they are. The first one signs, all verify. Default: a random key in the token store.
	SigningKey []string `json:"signing_key,omitempty" option:"secret" example:"{env.MEDIA_SIGNING_KEY}"`

	// The folder for uploads that are being received for storages on other hosts. Uploads up to 1
	// MiB stay in memory, 64 MiB in all. The folder must exist. It should be on a disk: on some
	// systems `/tmp` is in memory. Its files have no names and end with the process. Default: the
	// system's folder for temporary files.
	SpoolFolder string `json:"spool_folder,omitempty"`

	// The time between two checks of a storage. A storage that fails is checked again after ten
	// seconds. Default: `1m`.
	HealthInterval options.Duration `json:"health_interval,omitempty"`
}

// Account is an API key with its password, or one for the users of another login. Changing or
// removing an account revokes its tokens at once.
type Account struct {
	// The hash of the password, made by `caddy hash-password --algorithm argon2id`. A bcrypt hash
	// works too, and takes more time at each login. `{new_password.<file>}` makes a password at the
	// first start, which only the log has, and the file with its hash. Required without `trust` and
	// `trust_header`. Default: none.
	PasswordHash string `json:"password_hash,omitempty" option:"secret" example:"{env.SITE_PASSWORD_HASH}"`

	// The aliases that the account may use. A name means both the image alias and the file alias.
	// Default: all.
	Aliases []string `json:"aliases,omitempty"`

	// What the account may do in its aliases: `upload`, `list`, `replace`, `move`, `copy` and
	// `delete` items, `import` them from addresses, and `sign` addresses of private items; `restore`
	// what is in the trash, and `purge` it for good. Tickets need `upload`. Default: `upload`.
	May []string `json:"may,omitempty" option:"words=upload|list|delete|move|copy|replace|import|sign|restore|purge"`

	// The secret with which programs that know S3 sign their requests, besides the API key as the
	// access key: 16 bytes or more, made by `openssl rand -base64 24`. They have the rights of the
	// account. It is a password of its own, readable to Caddy. Default: none, so no S3.
	S3Secret string `json:"s3_secret,omitempty" option:"secret" example:"{env.SITE_S3_SECRET}"`

	// The placeholder `{http.auth.user.*}` with the ID of a user. A handler of Caddy sets it after a
	// login: `basic_auth`, `jwtauth`. A request without a token, for which it is set, acts as this
	// account for this user. Such an account has no password. Only one account may have users.
	// Default: none.
	Trust string `json:"trust,omitempty" option:"verbatim" example:"{http.auth.user.id}"`

	// The header with the ID of a user, in place of `trust`. `forward_auth` copies it from the
	// answer of the login. Whoever can send this header past that login is that user, so the site
	// must not be reachable in another way. Default: none.
	TrustHeader string `json:"trust_header,omitempty" option:"verbatim" example:"Remote-User"`

	// The folder of a user in each alias. The user can use nothing outside it. `{http.auth.user.id}`
	// is the ID, from `trust` or `trust_header`. One that is no plain name becomes a hash. Default:
	// all users share the aliases.
	SubFolder string `json:"sub_folder,omitempty" option:"verbatim" example:"users/{http.auth.user.id}"`

	// How long the uploads of users are held: their items exist only once they are kept, by
	// `action=keep`. From `1m` to `168h`. Needs resumable uploads, in whose storage they wait.
	// Default: items are stored at once.
	Hold options.Duration `json:"hold,omitempty" example:"24h"`
}

// The files whose comments document the options.
var (
	//go:embed config.go
	configComments string
	//go:embed storage.go
	storageComments string
	//go:embed alias.go
	aliasComments string
	//go:embed private.go
	privateComments string
	//go:embed rendition.go
	renditionComments string
	//go:embed limits.go
	limitsComments string
	//go:embed check.go
	checkComments string
	//go:embed gocode.go
	downloadComments string
	//go:embed resumable.go
	resumableComments string
)

// Schemas describe the options of a [Config]. Storage does not include the driver, which describes
// itself.
var Schemas = struct {
	Settings, Account, Storage, ImageAlias, FileAlias, Rendition, Check, Limits, Downloads, Resumable *options.Schema
}{
	Settings:   options.Of[Settings](configComments),
	Account:    options.Of[Account](configComments),
	Storage:    options.Of[Storage](storageComments),
	ImageAlias: options.Of[ImageAlias](aliasComments, privateComments, checkComments, renditionComments),
	FileAlias:  options.Of[FileAlias](aliasComments, privateComments, checkComments),
	Rendition:  options.Of[Rendition](renditionComments),
	Check:      options.Of[Check](checkComments),
	Limits:     options.Of[Limits](limitsComments),
	Downloads:  options.Of[Downloads](downloadComments),
	Resumable:  options.Of[Resumable](resumableComments),
}

// Check implements options.Checker.
func (a *Account) Check() error {
	known := access.Rights()
	for _, right := range a.May {
		if !slices.Contains(known, access.Right(right)) {
			return fmt.Errorf("may: %q is none of %s", right, joined(known))
		}
	}
	return a.checkTrust()
}

// joined returns rights as text for a message.
func joined(rights []access.Right) string {
	words := make([]string, len(rights))
	for i, right := range rights {
		words[i] = string(right)
	}
	return strings.Join(words, ", ")
}

// rights returns the rights of the account.
func (a *Account) rights() []access.Right {
	rights := make([]access.Right, len(a.May))
	for i, right := range a.May {
		rights[i] = access.Right(right)
	}
	return rights
}

// Check implements options.Checker.
func (s *Settings) Check() error {
	if _, err := service.ParseOrigins(s.CORS); err != nil {
		return fmt.Errorf("cors: %w", err)
	}
	for _, key := range s.SigningKey {
		if len(key) < signing.MinKey {
			return fmt.Errorf("signing_key: a key has %d bytes, and needs %d or more", len(key), signing.MinKey)
		}
	}
	_, _, err := parseTrash(s.Trash)
	return err
}

// needsEncoder reports whether an alias needs the WebP encoder, for variants or renditions.
func (c *Config) needsEncoder() bool {
	for _, a := range c.ImageAliases {
		if a != nil && (a.WebP != nil || len(a.Renditions) > 0) {
			return true
		}
	}
	return false
}

// complete replaces the options by checked copies with their defaults.
func (c *Config) complete() error {
	if err := Schemas.Settings.Check(&c.Settings); err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		schema  *options.Schema
		options any
	}{
		{"limits", Schemas.Limits, &c.Limits},
		{"downloads", Schemas.Downloads, &c.Downloads},
		{"resumable", Schemas.Resumable, &c.Resumable},
	} {
		if err := part.schema.Check(part.options); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if err := c.checkSpoolFolder(); err != nil {
		return err
	}
	c.Limits = c.Limits.withDefaults()
	c.Storages = slices.Clone(c.Storages)
	for i := range c.Storages {
		if err := c.Storages[i].complete(c.SpoolFolder); err != nil {
			return fmt.Errorf("storage %q: %w", c.Storages[i].Name, err)
		}
	}
	if err := checkCaches(c.Storages); err != nil {
		return err
	}
	err := completeAll(Schemas.ImageAlias, "image alias", Names, &c.ImageAliases)
	if err == nil {
		err = completeAll(Schemas.FileAlias, "file alias", Names, &c.FileAliases)
	}
	if err == nil {
		err = completeAll(Schemas.Account, "account", APIKeys, &c.Accounts)
	}
	if err == nil {
		err = c.CheckAccounts()
	}
	if err == nil {
		err = c.CheckReferences(func(string) bool { return true })
	}
	return err
}

// completeAll replaces entries by checked copies.
func completeAll[T any](schema *options.Schema, noun string, names nameRule, entries *map[string]*T) error {
	all := make(map[string]*T, len(*entries))
	for _, name := range slices.Sorted(maps.Keys(*entries)) {
		err := names.Check(name)
		if given := (*entries)[name]; err == nil && given != nil {
			all[name] = new(*given)
			err = schema.Check(all[name])
		} else if err == nil {
			err = errors.New("it is empty")
		}
		if err != nil {
			return fmt.Errorf("%s %q: %w", noun, name, err)
		}
	}
	*entries = all
	return nil
}

// storageNames returns the names of the storages.
func (c *Config) storageNames() []string {
	names := make([]string, len(c.Storages))
	for i, s := range c.Storages {
		names[i] = s.Name
	}
	return names
}

// CheckReferences returns an error if an alias or the resumable uploads name an unknown storage, or
// an account an unknown alias. It omits names that are not known yet.
func (c *Config) CheckReferences(known func(name string) bool) error {
	storages := c.storageNames()
	check := func(kind, name, storage string) error {
		if _, err := StorageOf(storage, storages); err != nil && known(storage) {
			return fmt.Errorf("%s alias %q: %w", kind, name, err)
		}
		return nil
	}
	images, files := slices.Sorted(maps.Keys(c.ImageAliases)), slices.Sorted(maps.Keys(c.FileAliases))
	for _, name := range images {
		if err := check("image", name, c.ImageAliases[name].Storage); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := check("file", name, c.FileAliases[name].Storage); err != nil {
			return err
		}
	}
	if s := c.Resumable.Storage; s != "" && !slices.Contains(storages, s) && known(s) {
		return fmt.Errorf("resumable: %w", noStorage(s, storages))
	}
	aliases := slices.Compact(slices.Sorted(slices.Values(slices.Concat(images, files))))
	for _, key := range slices.Sorted(maps.Keys(c.Accounts)) {
		for _, name := range c.Accounts[key].Aliases {
			if !slices.Contains(aliases, name) && known(name) {
				return fmt.Errorf("account %q: aliases: there is no alias %q; there are %s", key, name, strings.Join(aliases, ", "))
			}
		}
	}
	return nil
}

// checkSpoolFolder returns an error unless the spool folder exists, if there is one.
func (s *Settings) checkSpoolFolder() error {
	if s.SpoolFolder == "" {
		return nil
	}
	stat, err := os.Stat(s.SpoolFolder)
	if err == nil && !stat.IsDir() {
		err = fmt.Errorf("%s is no folder", s.SpoolFolder)
	}
	if err != nil {
		return fmt.Errorf("spool_folder: %w", err)
	}
	return nil
}
