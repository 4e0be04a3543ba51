package imaging

import (
	"cmp"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
)

// Format is the display name of an image format.
type Format string

// The formats that are accepted as images.
const (
	JPEG Format = "JPEG"
	PNG  Format = "PNG"
	GIF  Format = "GIF"
	SVG  Format = "SVG"
	WebP Format = "WebP"
	AVIF Format = "AVIF"
	HEIC Format = "HEIC"
)

// Extension returns the extension of a format, without a dot: "jpg" for JPEG.
func (f Format) Extension() string {
	if f == JPEG {
		return "jpg"
	}
	return strings.ToLower(string(f))
}

// Decodable reports whether images of the format can be decoded, so that others can be made of
// them.
func (f Format) Decodable() bool { return f == JPEG || f == PNG || f == GIF || f == WebP }

// FormatOf returns the format that an extension (lower case, no dot) names; empty if it names none.
func FormatOf(ext string) Format { return formats[ext] }

// Defaults of [Options].
const (
	defaultMaxPixels      = 50_000_000
	defaultMaxFrames      = 1000
	defaultMaxFramePixels = 200_000_000
	defaultMaxSide        = 65_535
	defaultMaxChunk       = 8 << 20
)

// maxBlocks is the largest number of parts (JPEG segments, PNG and WebP chunks, GIF blocks) of an
// image. A real image of 32 MiB has a few thousand. Millions of empty parts waste time in every
// decoder.
const maxBlocks = 100_000

// Options are the limits of an image. The zero value means the documented defaults.
type Options struct {
	// MaxPixels is the largest width times height. 0 means 50,000,000.
	MaxPixels int64
	// MaxFrames is the largest number of frames of an animation. 0 means 1000.
	MaxFrames int
	// MaxFramePixels is the largest sum of the areas of all frames. 0 means 200,000,000.
	MaxFramePixels int64
	// MaxSide is the longest side in pixels. 0 means 65,535, the most that JPEG and GIF can store.
	MaxSide int
	// MaxChunk is the largest size, in bytes, of a part without pixels. A part is the data of a PNG
	// or WebP chunk, or a GIF extension with all its sub-blocks. 0 means 8,388,608, about the limit
	// of libpng. JPEG segments need no limit: their format allows 65,535 bytes.
	MaxChunk int64
	// SVG is the treatment of SVG images. Empty means [SVGReject].
	SVG SVGMode
	// Strip is the metadata that [Info.Stripped] removes. Empty means [StripOff].
	Strip StripMode
}

func (o Options) withDefaults() Options {
	o.MaxPixels = cmp.Or(max(o.MaxPixels, 0), defaultMaxPixels)
	o.MaxFrames = cmp.Or(max(o.MaxFrames, 0), defaultMaxFrames)
	o.MaxFramePixels = cmp.Or(max(o.MaxFramePixels, 0), defaultMaxFramePixels)
	o.MaxSide = cmp.Or(max(o.MaxSide, 0), defaultMaxSide)
	o.MaxChunk = cmp.Or(max(o.MaxChunk, 0), defaultMaxChunk)
	o.Strip = cmp.Or(o.Strip, StripOff)
	return o
}

// raster describes a pixel format.
type raster struct {
	mediaType string
	// config reads the size of the image; nil if walk records it.
	config func(io.Reader) (image.Config, error)
	// walk goes over the blocks from the first byte to the end marker and records their properties
	// in the Info. An error other than a refusal means a damaged file.
	walk func(*source, Options, *Info) error
}

var (
	formats = map[string]Format{
		"jpg": JPEG, "jpeg": JPEG, "png": PNG, "gif": GIF, "svg": SVG, "webp": WebP, "avif": AVIF, "heic": HEIC,
	}
	rasters = map[Format]raster{
		JPEG: {"image/jpeg", jpeg.DecodeConfig, walkJPEG},
		PNG:  {"image/png", png.DecodeConfig, walkPNG},
		GIF:  {"image/gif", gif.DecodeConfig, walkGIF},
		WebP: {"image/webp", nil, walkWebP},
		AVIF: {"image/avif", nil, walkBMFF},
		HEIC: {"image/heic", nil, walkBMFF},
	}
)

// CheckImage checks that r is a complete image of the format that ext (lower case, no dot) names,
// within opts. It decodes no pixels. size is the length of r. CheckImage reads r from its first
// byte, wherever r stood before, and leaves it at any position. Bytes after the end marker of an
// image are allowed.
//
// The error is a [*ContentError], a [*TooLargeError], or wraps a failure of r.
func CheckImage(r io.ReadSeeker, size int64, ext string, opts Options) (Info, error) {
	format, ok := formats[ext]
	if !ok {
		return Info{}, contentErrorf("a .%s file is not accepted as an image", shorten(ext))
	}
	s, err := newSource(r)
	if err != nil {
		return Info{}, err
	}
	defer s.release()
	if _, err := s.Peek(1); errors.Is(err, io.EOF) {
		return Info{}, contentErrorf("the file is empty")
	}
	if format == SVG {
		return checkSVG(s, size, opts.SVG)
	}
	return checkRaster(s, size, format, ext, opts.withDefaults())
}

// checkRaster walks before it decodes. The walk is bounded for all input; the search of a decoder
// for a header is not.
func checkRaster(s *source, size int64, format Format, ext string, opts Options) (Info, error) {
	kind := rasters[format]
	info := Info{Format: format, Frames: 1, Orientation: Upright, size: size}
	if err := kind.walk(s, opts, &info); err != nil {
		return Info{}, refuseRaster(s, format, ext, err)
	}
	if kind.config != nil {
		if err := s.rewind(); err != nil {
			return Info{}, err
		}
		cfg, err := kind.config(s)
		if errors.Is(err, errPNGOverflow) {
			return Info{}, tooLargef("the image has far more than the %s pixels allowed", thousands(opts.MaxPixels))
		}
		if err != nil {
			return Info{}, refuseRaster(s, format, ext, err)
		}
		info.Width, info.Height = cfg.Width, cfg.Height
	}
	if err := info.checkSize(opts); err != nil {
		return Info{}, err
	}
	if info.FramePixels == 0 {
		info.FramePixels = int64(info.Width) * int64(info.Height)
	}
	if opts.Strip == StripOff {
		info.layout = layout{}
		info.keep(0, size)
	}
	slices.SortStableFunc(info.patches, func(a, b patch) int { return cmp.Compare(a.span, b.span) })
	return info, nil
}

// checkSize checks the size of the image against the limits.
func (i *Info) checkSize(opts Options) error {
	if i.Width <= 0 || i.Height <= 0 {
		return contentErrorf("the %s image has no width or no height", i.Format)
	}
	// No format stores a side over 32 bits, so the product cannot overflow.
	pixels := int64(i.Width) * int64(i.Height)
	if pixels > opts.MaxPixels {
		return tooLargef("the image has %s pixels, at most %s are allowed",
			thousands(pixels), thousands(opts.MaxPixels))
	}
	if int64(i.scans)*pixels/maxVisits > opts.MaxPixels {
		return tooLargef("the JPEG image has %d scans, too many for its size", i.scans)
	}
	if side := max(i.Width, i.Height); side > opts.MaxSide {
		return tooLargef("the image has a side of %s pixels, at most %s are allowed",
			thousands(int64(side)), thousands(int64(opts.MaxSide)))
	}
	return nil
}

// refuseRaster returns the error for a failed walk or decoder. In order of precedence, the reason
// is a failing reader, a limit, another type of content, or damage.
func refuseRaster(s *source, format Format, ext string, cause error) error {
	if err := s.ioError(); err != nil {
		return err
	}
	if refused := refusal(cause); refused != nil {
		return refused
	}
	if other, ok := errors.AsType[*mismatchError](cause); ok {
		return contentErrorf("%v, the name says .%s", other, ext)
	}
	head, err := s.head(sniffSize)
	if err != nil {
		return err
	}
	if found := sniff(head); !within(found, rasters[format].mediaType) && !unknown(found) {
		return contentErrorf("content is %s, the name says .%s", typeName(found, head), ext)
	}
	switch {
	case errors.Is(cause, io.EOF), errors.Is(cause, io.ErrUnexpectedEOF):
		return endMissing(format)
	case unsupported(cause):
		return contentErrorf("the %s image uses a feature that is not supported", format)
	}
	return contentErrorf("content is not %s image or is damaged", format.article())
}

func endMissing(f Format) error {
	return contentErrorf("content is not %s image or is damaged: its end is missing", f.article())
}

// frameSum counts the frames of an animation against the limits.
type frameSum struct {
	opts   Options
	count  int
	pixels int64
}

// add counts one frame. Sides have at most 31 bits, so an area fits in 64. The sum is checked at
// every step.
func (f *frameSum) add(width, height int64) error {
	f.count++
	if f.count > f.opts.MaxFrames {
		return tooLargef("the animation has more than the %s frames allowed", thousands(int64(f.opts.MaxFrames)))
	}
	area := width * height
	if area > f.opts.MaxFramePixels-f.pixels {
		return tooLargef("the frames of the animation have more than the %s pixels allowed in all",
			thousands(f.opts.MaxFramePixels))
	}
	f.pixels += area
	return nil
}
