package mediaapp

import (
	"errors"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Redirect answers GET requests for items with the address at which the storage itself serves
// them, so that their bytes do not pass through here. SVG, HTML and XML are served here all
// the same: only here they come without rights.
type Redirect struct {
	// The kind of address: `presigned` is one that the storage accepts for a while (S3, Azure
	// Blob, Google Cloud Storage), `public` one of a storage that serves everyone. Required.
	To string `json:"to,omitempty" option:"required,words=presigned|public"`

	// The public address of the root of the storage, for `public`: an item of the key
	// `img/content/a.png` is at `<base>/img/content/a.png`.
	Base string `json:"base,omitempty" option:"address" example:"https://media.example.com"`

	// How long an address is valid for which the storage asks for a signature, at most
	// seven days. Clients keep the redirect for half of this time. Default: `1h`.
	Lifetime options.Duration `json:"lifetime,omitempty" example:"1h"`
}

const (
	toPresigned = "presigned"
	toPublic    = "public"
)

// options returns nil if there is no redirect. r must be expanded.
func (r *Redirect) options() (*ingest.Redirect, error) {
	switch {
	case r == nil:
		return nil, nil //nolint:nilnil // see above
	case r.To == toPublic && r.Base == "":
		return nil, errors.New("public needs the address of the storage")
	case r.To == toPresigned && r.Base != "":
		return nil, errors.New("presigned takes no address: the storage makes it")
	}
	return &ingest.Redirect{Base: r.Base, Lifetime: time.Duration(r.Lifetime)}, nil
}

func (o *AliasOptions) parseRedirect(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) == 0 {
		return d.ArgErr()
	}
	o.Redirect = &Redirect{To: args[0]}
	rest := args[1:]
	switch {
	case args[0] != toPresigned && args[0] != toPublic:
		return d.Errf("redirect is %s or %s, not %q", toPresigned, toPublic, args[0])
	case args[0] == toPublic && len(rest) == 0:
		return d.ArgErr()
	case args[0] == toPublic:
		o.Redirect.Base, rest = rest[0], rest[1:]
	}
	if len(rest) > 1 {
		return d.ArgErr()
	}
	if len(rest) == 1 {
		lifetime, err := options.ParseDuration(rest[0])
		if err != nil || lifetime <= 0 {
			return d.Errf("the lifetime of redirect is a duration such as 1h, not %q", rest[0])
		}
		o.Redirect.Lifetime = options.Duration(lifetime)
	}
	return nil
}
