package media

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/ingest"
)

// Limits bound the resources that clients can use. None is infinite; 0 is the default.
type Limits struct {
	// MaxBody is the most bytes of an upload request. Default: 4 GiB.
	MaxBody int64
	// MaxUploads is how many uploads of an account may run at the same time. Default: 256.
	MaxUploads int
	// MaxUploadTime is the longest time to receive the body of an upload. Default: 6h.
	MaxUploadTime time.Duration
	// Requests are the limits of one request. Defaults: 200 files, 100 fields of 8 KiB, headers of
	// 16 KiB.
	Requests ingest.Limits
	// MaxImageSize is the largest image in bytes, if the alias has no limit. Default: 32 MiB.
	MaxImageSize int64
	// MaxFileSize is the largest file in bytes, if the alias has no limit. Default: 2 GiB.
	MaxFileSize int64
	// Pictures are the limits of images. Their SVG mode is that of the alias.
	Pictures imaging.Options
	// Encoding are the limits of processing pictures.
	Encoding render.Limits
	// MaxOpenItems is how many items a client may have open at the same time. Default: 256.
	MaxOpenItems int
	// LoginFailures is how many failed logins a client may have per minute. Default: 10.
	LoginFailures int
	// TicketsPerMinute is how many tickets an account may request per minute. One that is valid for long
	// counts once more for every four hours. Default: 600.
	TicketsPerMinute int
	// PasswordChecks is how many passwords are checked at the same time. Default: one for every two
	// processors.
	PasswordChecks int
}

const (
	defaultMaxBody       = 4 << 30
	defaultMaxUploads    = 256
	defaultMaxUploadTime = 6 * time.Hour
	defaultMaxFiles      = 200
	defaultMaxFields     = 100
	defaultMaxFieldSize  = 8 << 10
	defaultMaxPartHeader = 16 << 10
	defaultMaxImageSize  = 32 << 20
	defaultMaxFileSize   = 2 << 30
	defaultMaxOpenItems  = 256
	defaultLoginFailures = 10
	defaultTickets       = 600
)

// WithDefaults returns the limits with the defaults of this package. Encoding, PasswordChecks and
// other zero values of Pictures get theirs in other packages.
func (l Limits) WithDefaults() Limits {
	l.MaxBody = cmp.Or(l.MaxBody, defaultMaxBody)
	l.MaxUploads = cmp.Or(l.MaxUploads, defaultMaxUploads)
	l.MaxUploadTime = cmp.Or(l.MaxUploadTime, defaultMaxUploadTime)
	l.Requests.MaxFiles = cmp.Or(l.Requests.MaxFiles, defaultMaxFiles)
	l.Requests.MaxFields = cmp.Or(l.Requests.MaxFields, defaultMaxFields)
	l.Requests.MaxFieldSize = cmp.Or(l.Requests.MaxFieldSize, defaultMaxFieldSize)
	l.Requests.MaxPartHeader = cmp.Or(l.Requests.MaxPartHeader, defaultMaxPartHeader)
	l.MaxImageSize = cmp.Or(l.MaxImageSize, defaultMaxImageSize)
	l.MaxFileSize = cmp.Or(l.MaxFileSize, defaultMaxFileSize)
	l.Pictures.MaxPixels = cmp.Or(l.Pictures.MaxPixels, imaging.DefaultMaxPixels)
	l.MaxOpenItems = cmp.Or(l.MaxOpenItems, defaultMaxOpenItems)
	l.LoginFailures = cmp.Or(l.LoginFailures, defaultLoginFailures)
	l.TicketsPerMinute = cmp.Or(l.TicketsPerMinute, defaultTickets)
	return l
}

// NewPictures returns a Maker with limits. It can encode WebP only if wanted.
func NewPictures(limits render.Limits, wanted bool, log *slog.Logger) (*render.Maker, error) {
	if !wanted {
		return render.NewMaker(nil, limits), nil
	}
	encoder, err := webp.New()
	if err != nil {
		return nil, fmt.Errorf("WebP encoder: %w", err)
	}
	log.Info("WebP encoder", "name", encoder.Name(), "can_be_stopped", encoder.Stops())
	return render.NewMaker(encoder, limits), nil
}
