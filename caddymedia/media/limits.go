package media

import (
	"cmp"
	"time"
)

// Limits bound what a stranger can make the service do. None is infinite; 0 is the default.
type Limits struct {
	// MaxBody is the most bytes of an upload request. Default: 4 GiB.
	MaxBody int64
	// MaxUploads is how many uploads an account may have under way at the same time. Default: 256.
	MaxUploads int
	// MaxUploadTime is how long the body of an upload may take to come. Default: 6h.
	MaxUploadTime time.Duration
	// MaxOpenItems is how many items a client may have open at the same time. Default: 256.
	MaxOpenItems int
}

const (
	defaultMaxBody       = 4 << 30
	defaultMaxUploads    = 256
	defaultMaxUploadTime = 6 * time.Hour
	defaultMaxOpenItems  = 256
)

// withDefaults returns the limits with a number in place of each 0.
func (l Limits) withDefaults() Limits {
	l.MaxBody = cmp.Or(l.MaxBody, defaultMaxBody)
	l.MaxUploads = cmp.Or(l.MaxUploads, defaultMaxUploads)
	l.MaxUploadTime = cmp.Or(l.MaxUploadTime, defaultMaxUploadTime)
	l.MaxOpenItems = cmp.Or(l.MaxOpenItems, defaultMaxOpenItems)
	return l
}
