package media

import (
	"cmp"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Limits bound the work that strangers can cause. None is infinite; 0 means the default.
type Limits struct {
	// The largest upload request, in bytes, and the most bytes of all its imports. Default: 4 GiB.
	MaxBody int64 `json:"max_body,omitempty" option:"size"`
	// The most concurrent uploads of an account; further uploads get 429. All accounts together may
	// use a quarter of the open files of the process, and one account half of that. Default: 256.
	MaxUploads int `json:"max_uploads,omitempty"`
	// The most time to receive the body of an upload. Default: `6h`.
	MaxUploadTime options.Duration `json:"max_upload_time,omitempty"`
	// The most files in a request. Default: 200.
	MaxFiles int `json:"max_files,omitempty"`
	// The most fields in a request. Default: 100.
	MaxFields int `json:"max_fields,omitempty"`
	// The largest field, in bytes. Default: 8 KiB.
	MaxFieldSize int64 `json:"max_field_size,omitempty" option:"size"`
	// The largest header of a part, in bytes. Default: 16 KiB.
	MaxPartHeader int64 `json:"max_part_header,omitempty" option:"size"`
	// The largest image, in bytes, for aliases without `max_size`. Default: 32 MiB.
	MaxImageSize int64 `json:"max_image_size,omitempty" option:"size"`
	// The largest file, in bytes, for aliases without `max_size`. Default: 2 GiB.
	MaxFileSize int64 `json:"max_file_size,omitempty" option:"size"`
	// The most pixels of an image, for aliases without `max_pixels`. Default: 50,000,000.
	MaxPixels int64 `json:"max_pixels,omitempty"`
	// The most frames of an animated image. Default: 1,000.
	MaxFrames int `json:"max_frames,omitempty"`
	// The most pixels of all frames of an image together. Default: 200,000,000.
	MaxFramePixels int64 `json:"max_frame_pixels,omitempty"`
	// The longest side of an image, in pixels. Default: 65,535.
	MaxSide int `json:"max_side,omitempty"`
	// The largest part of a PNG, GIF or WebP without pixels, in bytes. Default: 8 MiB.
	MaxChunkSize int64 `json:"max_chunk_size,omitempty" option:"size"`
	// The most images that are decoded and encoded at the same time. Default: one for each
	// processor.
	ImageWorkers int `json:"image_workers,omitempty"`
	// The most memory of all images at work, in bytes, estimated from their headers and sizes. The
	// service itself needs about 120 MiB more. An image that alone needs more gets no variant; if it
	// cannot even be decoded, it is refused. Default: 512 MiB.
	ImageMemory int64 `json:"image_memory,omitempty" option:"size"`
	// The most images that wait for work. The accounts take turns. If the queue is full, the account
	// with the most waiting images gets 503. As many renditions on request may wait in a queue of
	// their own, and as many of animations. Default: 500.
	ImageQueue int `json:"image_queue,omitempty"`
	// The most time that an image waits for work before the answer is 503. Default: `30s`.
	ImageWait options.Duration `json:"image_wait,omitempty"`
	// The most time to encode a variant or a rendition; after that, the image is stored without it.
	// Eager renditions that have not begun by then are left to their first request. An image that
	// takes this long to decode, and at least 20 seconds, is refused with 413. Default: `20s`.
	ImageTime options.Duration `json:"image_time,omitempty"`
	// The most concurrent downloads of a client address. More wait for up to 30 seconds; then the
	// answer is 429. Items up to 256 KiB hardly count. Behind a proxy set `trusted_proxies`, or all
	// clients share one address. Default: 256.
	MaxOpenItems int `json:"max_open_items,omitempty"`
	// The most failed logins of a client address (IPv6: a /64) per minute. Its network (a /24 or
	// /48) has five times as many, and an account three times. A client that has logged in to the
	// account within 30 days has this number for itself, whatever others do. Successful logins do
	// not count. Behind a proxy set `trusted_proxies`, or all clients share one address. Default:
	// 10.
	LoginFailures int `json:"login_failures,omitempty"`
	// The most tickets that an account may request per minute on one server. A ticket counts once
	// more for every four hours of its lifetime. Default: 600.
	TicketsPerMinute int `json:"tickets_per_minute,omitempty"`
	// The most concurrent checks of passwords, with up to 50 MB of memory each. Default: one for
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

// parts returns the limits of a service.
func (l *Limits) parts(needsEncoder bool) service.Limits {
	return service.Limits{
		Requests: upload.Limits{
			MaxFiles: l.MaxFiles, MaxFields: l.MaxFields, MaxFieldSize: l.MaxFieldSize, MaxPartHeader: l.MaxPartHeader,
		},
		Images: render.Limits{
			Workers: l.ImageWorkers, Memory: l.ImageMemory, Queue: l.ImageQueue,
			Wait: time.Duration(l.ImageWait), Time: time.Duration(l.ImageTime),
		},
		NeedsEncoder: needsEncoder, MaxBody: l.MaxBody, MaxUploads: l.MaxUploads, MaxUploadTime: time.Duration(l.MaxUploadTime),
		MaxOpenItems: l.MaxOpenItems,
		Logins:       service.LoginLimits{Failures: l.LoginFailures, PasswordChecks: l.PasswordChecks, TicketsPerMinute: l.TicketsPerMinute},
	}
}

// imaging returns the limits of an image.
func (l *Limits) imaging() imaging.Options {
	return imaging.Options{
		MaxPixels: l.MaxPixels, MaxFrames: l.MaxFrames, MaxFramePixels: l.MaxFramePixels,
		MaxSide: l.MaxSide, MaxChunk: l.MaxChunkSize,
	}
}
