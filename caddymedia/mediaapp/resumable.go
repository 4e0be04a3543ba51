package mediaapp

import (
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Resumable says how uploads are kept that continue after an interruption, in pieces, by the
// protocol tus.
type Resumable struct {
	// Refuses resumable uploads: `resumable off`. Default: they are accepted.
	Off bool `json:"off,omitempty"`
	// The storage that holds unfinished uploads. A folder of this machine makes uploads to
	// another host faster, but several machines that serve the same uploads must share the
	// storage. Default: the storage of the alias.
	Storage string `json:"storage,omitempty" example:"default"`
	// How long an unfinished upload is kept after its last byte. One that a ticket began ends
	// sooner. Default: `24h`.
	Expires options.Duration `json:"expires,omitempty" example:"24h"`
	// The most unfinished uploads of an account; one more is answered with 429. Default: 100.
	MaxOpen int `json:"max_open,omitempty" example:"100"`
	// The most bytes of all unfinished uploads of an account, by their lengths; more are answered
	// with 429. At least twice the largest `max_size` of an alias. Default: 32 times that.
	MaxBytes int64 `json:"max_bytes,omitempty" option:"size"`
}

const resumableOff = "off"

// options returns the options of the service. A nil r has the defaults.
func (r *Resumable) options() (media.Resumable, error) {
	if r == nil {
		return media.Resumable{}, nil
	}
	expanded := *r
	if err := resumableOptions.Expand(&expanded); err != nil {
		return media.Resumable{}, err
	}
	return media.Resumable{
		Off: expanded.Off, Storage: expanded.Storage, Expires: time.Duration(expanded.Expires),
		MaxOpen: expanded.MaxOpen, MaxBytes: expanded.MaxBytes,
	}, nil
}

// parseResumable reads the word "off", or a block of options.
func (a *App) parseResumable(d *caddyfile.Dispenser) error {
	if a.Resumable != nil {
		return d.Err(`option "resumable" of media is given twice`)
	}
	a.Resumable = new(Resumable)
	args := d.RemainingArgs()
	switch {
	case len(args) > 1:
		return d.ArgErr()
	case len(args) == 0:
		readers := resumableOptions.Readers(a.Resumable, nil)
		delete(readers, resumableOff) // it is the argument
		return options.ParseBlock(d, "resumable", readers)
	case args[0] != resumableOff:
		return d.Errf("resumable is %s or has a block of options, not %q", resumableOff, args[0])
	}
	a.Resumable.Off = true
	return options.ParseBlock(d, "resumable off", nil)
}

// line is the opposite of parseResumable. Other options beside "off" cannot be written.
func (r *Resumable) line() options.Line {
	line := options.Line{Words: []string{"resumable"}}
	if r.Off {
		line.Words = append(line.Words, resumableOff)
		return line
	}
	line.Block = resumableOptions.Lines(r)
	return line
}
