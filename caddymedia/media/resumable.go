package media

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
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
