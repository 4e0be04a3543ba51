package media

import (
	"cmp"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Resumable has the options of uploads that continue after an interruption, by the protocol tus.
type Resumable struct {
	// Refuses resumable uploads: `resumable off`. Default: they are accepted.
	Off bool `json:"off,omitempty"`
	// The storage of unfinished uploads. A local folder makes uploads to another host faster, but
	// servers that continue the same uploads must share this storage. Default: the storage of the
	// alias.
	Storage string `json:"storage,omitempty" example:"default"`
	// The time until an unfinished upload expires after its last byte. An upload with a ticket
	// expires with the ticket, if that is sooner. Default: `24h`.
	Expires options.Duration `json:"expires,omitempty" example:"24h"`
	// The most unfinished uploads of an account; further uploads get 429. Default: 100.
	MaxOpen int `json:"max_open,omitempty" example:"100"`
	// The most bytes of all unfinished uploads of an account, by their lengths; further uploads get
	// 429. At least twice the largest `max_size` of an alias. Default: 32 times that size.
	MaxBytes int64 `json:"max_bytes,omitempty" option:"size"`
}

// parts returns the options with their defaults.
func (r *Resumable) parts() service.Resumable {
	return service.Resumable{
		Off: r.Off, Storage: r.Storage, MaxBytes: r.MaxBytes, MaxOpen: cmp.Or(r.MaxOpen, 100),
		Expires: cmp.Or(time.Duration(r.Expires), 24*time.Hour),
	}
}
