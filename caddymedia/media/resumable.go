package media

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// Resumable are the options of resumable uploads. The zero value accepts them, with the defaults.
type Resumable struct {
	// Off refuses resumable uploads.
	Off bool
	// Storage is the name of the storage that holds unfinished uploads. Default: that of the alias
	// of each upload.
	Storage string
	// Expires is how long an unfinished upload is kept after its last byte. Default: 24h.
	Expires time.Duration
	// MaxOpen is how many unfinished uploads an account may have. Default: 100.
	MaxOpen int
	// MaxBytes is the largest sum of their lengths. Default: 32 times the largest MaxSize of an
	// alias.
	MaxBytes int64
}

const (
	defaultResumableExpires = 24 * time.Hour
	defaultMaxOpenResumable = 100
	defaultLargestUploads   = 32
	minLargestUploads       = 2
)

// withDefaults returns the options with their defaults, or an error that names an invalid one.
// storages are the names of all storages, and largest is the largest MaxSize of an alias.
func (r Resumable) withDefaults(storages []string, largest int64) (Resumable, error) {
	if err := CheckResumableStorage(r.Storage, storages); err != nil {
		return r, err
	}
	switch {
	case r.Expires < 0:
		return r, errors.New("expires is negative")
	case r.MaxOpen < 0:
		return r, errors.New("max_open is negative")
	case r.MaxBytes < 0 || r.MaxBytes > 0 && r.MaxBytes/minLargestUploads < largest:
		return r, fmt.Errorf("max_bytes is less than twice the largest max_size of an alias, %s", bytesize.Format(largest))
	}
	r.Expires = cmp.Or(r.Expires, defaultResumableExpires)
	r.MaxOpen = cmp.Or(r.MaxOpen, defaultMaxOpenResumable)
	r.MaxBytes = cmp.Or(r.MaxBytes, defaultLargestUploads*min(largest, math.MaxInt64/defaultLargestUploads))
	return r, nil
}

// CheckResumableStorage returns an error unless name is one of storages, or empty: each alias uses
// its own storage then.
func CheckResumableStorage(name string, storages []string) error {
	if name == "" || slices.Contains(storages, name) {
		return nil
	}
	return noStorage(name, storages)
}

// noStorage returns the error of an option that names an unknown storage.
func noStorage(name string, storages []string) error {
	return fmt.Errorf("storage: there is no storage %q; there are %s",
		name, strings.Join(slices.Sorted(slices.Values(storages)), ", "))
}

// ResumableOptions returns the options of resumable uploads, including the defaults.
func (s *Service) ResumableOptions() Resumable { return s.resumable }
