package media

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
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

// The largest sum of the lengths of unfinished uploads, as multiples of the largest MaxSize of an alias.
const (
	defaultLargestUploads = 32
	minLargestUploads     = 2
)

// withDefaults returns the options with their defaults, or an error if MaxBytes is too small. largest
// is the largest MaxSize of an alias.
func (r Resumable) withDefaults(largest int64) (Resumable, error) {
	if r.MaxBytes > 0 && r.MaxBytes/minLargestUploads < largest {
		return r, fmt.Errorf("max_bytes is less than twice the largest max_size of an alias, %s", bytesize.Format(largest))
	}
	r.Expires = cmp.Or(r.Expires, options.Duration(24*time.Hour))
	r.MaxOpen = cmp.Or(r.MaxOpen, 100)
	r.MaxBytes = cmp.Or(r.MaxBytes, defaultLargestUploads*min(largest, math.MaxInt64/defaultLargestUploads))
	return r, nil
}

// ResumableOptions returns the options of resumable uploads, including the defaults.
func (s *Service) ResumableOptions() Resumable { return s.resumable }
