package media

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/upload"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Limits bound what a stranger can make the service do. None is infinite; 0 is the
// default.
type Limits struct {
	// The largest upload request, in bytes. Default: 4 GiB.
	MaxBody int64 `json:"max_body,omitempty" option:"size"`
	// How many uploads an account may have under way at the same time; one more is answered
	// with 429. All accounts together have a quarter of the open files that the process may have,
	// and one alone half of that. Default: 256.
	MaxUploads int `json:"max_uploads,omitempty"`
	// How long the body of an upload may take to come. Default: `6h`.
	MaxUploadTime options.Duration `json:"max_upload_time,omitempty"`
	// The most files of a request. Default: 200.
	MaxFiles int `json:"max_files,omitempty"`
	// The most fields of a request. Default: 100.
	MaxFields int `json:"max_fields,omitempty"`
	// The largest field, in bytes. Default: 8 KiB.
	MaxFieldSize int64 `json:"max_field_size,omitempty" option:"size"`
	// The largest header of a part, in bytes. Default: 16 KiB.
	MaxPartHeader int64 `json:"max_part_header,omitempty" option:"size"`
	// The largest picture in bytes, where the alias does not say. Default: 32 MiB.
	MaxImageSize int64 `json:"max_image_size,omitempty" option:"size"`
	// The largest file in bytes, where the alias does not say. Default: 2 GiB.
	MaxFileSize int64 `json:"max_file_size,omitempty" option:"size"`
	// The most pixels of a picture, where the alias does not say. Default: 50,000,000.
	MaxPixels int64 `json:"max_pixels,omitempty"`
	// The most frames of an animated picture. Default: 1,000.
	MaxFrames int `json:"max_frames,omitempty"`
	// The most pixels of all frames of a picture together. Default: 200,000,000.
	MaxFramePixels int64 `json:"max_frame_pixels,omitempty"`
	// The longest side of a picture in pixels. Default: 65,535.
	MaxSide int `json:"max_side,omitempty"`
	// The largest part of a PNG, GIF or WebP that holds no pixels, in bytes. Default: 8 MiB.
	MaxChunkSize int64 `json:"max_chunk_size,omitempty" option:"size"`
	// How many pictures are decoded and encoded at the same time. Default: one for each
	// processor.
	ImageWorkers int `json:"image_workers,omitempty"`
	// How many bytes of memory the pictures that are worked on may take together, by
	// estimates from their headers and sizes; the service itself needs about 120 MiB
	// besides. A picture that alone would need more has no variant, or is refused where
	// it cannot even be decoded. Default: 512 MiB.
	ImageMemory int64 `json:"image_memory,omitempty" option:"size"`
	// How many images may wait for the others, as many long animations, and five times as many images
	// below a megapixel; the three take turns. Accounts take turns. Where the queue is full, the
	// account with the most waiting images gets a 503. Default: 100.
	ImageQueue int `json:"image_queue,omitempty"`
	// How long a picture may wait for the others before it is answered with 503.
	// Default: `30s`.
	ImageWait options.Duration `json:"image_wait,omitempty"`
	// How long an encoder may take for a variant or a rendition of an image, which is then
	// stored without it. While images of other accounts wait, the encoder of a variant has a third
	// of `image_wait`. An image that takes that long to be decoded, at least 20 seconds, is
	// refused with 413. Pauses for other images do not count.
	// Default: `20s`.
	ImageTime options.Duration `json:"image_time,omitempty"`
	// How many items a client address may have open at the same time, that is downloads that are
	// under way. Twice as many may wait for 30 seconds; after that, and for any more, it is 429.
	// Items up to 256 KiB hardly count. Behind a proxy set `trusted_proxies`, or all clients share one address. Default: 256.
	MaxOpenItems int `json:"max_open_items,omitempty"`
	// How many failed logins a client address (IPv6: a /64) has per minute. Its network (a /24
	// or /48) has five times as many, an account three times. An account has this many of its
	// own where it has logged in within 30 days, whatever happens elsewhere. Right logins cost
	// nothing. Behind a proxy set `trusted_proxies`, or all clients share one address. Default:
	// 10.
	LoginFailures int `json:"login_failures,omitempty"`
	// How many tickets an account may request per minute on one server. One that is valid for long
	// counts once more for every four hours. Default: 600.
	TicketsPerMinute int `json:"tickets_per_minute,omitempty"`
	// How many passwords are checked at the same time; each may take 50 MB. Default: one for
	// every two processors.
	PasswordChecks int `json:"password_checks,omitempty"`
}

// withDefaults returns the limits with their defaults. The zero values of images and of logins get
// theirs in the packages that they are for.
func (l Limits) withDefaults() Limits {
	l.MaxBody = cmp.Or(l.MaxBody, 4<<30)
	l.MaxUploads = cmp.Or(l.MaxUploads, 256)
	l.MaxUploadTime = cmp.Or(l.MaxUploadTime, options.Duration(6*time.Hour))
	l.MaxFiles = cmp.Or(l.MaxFiles, 200)
	l.MaxFields = cmp.Or(l.MaxFields, 100)
	l.MaxFieldSize = cmp.Or(l.MaxFieldSize, 8<<10)
	l.MaxPartHeader = cmp.Or(l.MaxPartHeader, 16<<10)
	l.MaxImageSize = cmp.Or(l.MaxImageSize, 32<<20)
	l.MaxFileSize = cmp.Or(l.MaxFileSize, 2<<30)
	l.MaxOpenItems = cmp.Or(l.MaxOpenItems, 256)
	return l
}

// requests returns the limits of one request.
func (l *Limits) requests() upload.Limits {
	return upload.Limits{
		MaxFiles: l.MaxFiles, MaxFields: l.MaxFields, MaxFieldSize: l.MaxFieldSize, MaxPartHeader: l.MaxPartHeader,
	}
}

// imaging returns the limits of an image.
func (l *Limits) imaging() imaging.Options {
	return imaging.Options{
		MaxPixels: l.MaxPixels, MaxFrames: l.MaxFrames, MaxFramePixels: l.MaxFramePixels,
		MaxSide: l.MaxSide, MaxChunk: l.MaxChunkSize,
	}
}

// NewPictures returns a Maker within the limits. It can encode WebP only if wanted.
func NewPictures(limits Limits, wanted bool, log *slog.Logger) (*render.Maker, error) {
	within := render.Limits{
		Workers: limits.ImageWorkers, Memory: limits.ImageMemory, Queue: limits.ImageQueue,
		Wait: time.Duration(limits.ImageWait), Time: time.Duration(limits.ImageTime),
	}
	if !wanted {
		return render.NewMaker(nil, within), nil
	}
	encoder, err := webp.New()
	if err != nil {
		return nil, fmt.Errorf("WebP encoder: %w", err)
	}
	log.Info("WebP encoder", "name", encoder.Name(), "can_be_stopped", encoder.Stops())
	return render.NewMaker(encoder, within), nil
}
