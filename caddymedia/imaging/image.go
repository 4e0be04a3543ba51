package imaging

import (
	"cmp"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"maps"
	"slices"
)

// Format is the display name of a picture format.
type Format string

// The formats that are accepted as pictures.
const (
	JPEG Format = "JPEG"
	PNG  Format = "PNG"
	GIF  Format = "GIF"
	SVG  Format = "SVG"
)

// Defaults of [Options].
const (
	DefaultMaxPixels      = 50_000_000
	DefaultMaxFrames      = 1000
	DefaultMaxFramePixels = 200_000_000
	DefaultMaxSide        = 65_535
	DefaultMaxChunk       = 8 << 20
)

// maxBlocks is the largest number of parts (PNG chunks, JPEG segments, GIF blocks) of a picture. A
// real picture of 32 MiB has a few thousand. Millions of empty parts waste time in every decoder.
const maxBlocks = 100_000

// Options are the limits of a picture. The zero value means the documented defaults.
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
	// chunk, or a GIF extension with all its sub-blocks. 0 means 8,388,608, about the limit of
	// libpng. JPEG segments need no limit: their format allows 65,535 bytes.
	MaxChunk int64
	// SVG is the treatment of SVG pictures. Empty means [SVGReject].
	SVG SVGMode
}

func (o Options) withDefaults() Options {
	o.MaxPixels = cmp.Or(max(o.MaxPixels, 0), DefaultMaxPixels)
	o.MaxFrames = cmp.Or(max(o.MaxFrames, 0), DefaultMaxFrames)
	o.MaxFramePixels = cmp.Or(max(o.MaxFramePixels, 0), DefaultMaxFramePixels)
	o.MaxSide = cmp.Or(max(o.MaxSide, 0), DefaultMaxSide)
	o.MaxChunk = cmp.Or(max(o.MaxChunk, 0), DefaultMaxChunk)
	return o
}

// raster describes a pixel format.
type raster struct {
	mediaType string
	config    func(io.Reader) (image.Config, error)
	// walk goes over the blocks from the first byte to the end marker and records their properties
	// in the Info, except for the size. An error other than a refusal means a damaged file.
	walk func(*source, Options, *Info) error
}

var (
	formats = map[string]Format{"jpg": JPEG, "jpeg": JPEG, "png": PNG, "gif": GIF, "svg": SVG}
	rasters = map[Format]raster{
		JPEG: {"image/jpeg", jpeg.DecodeConfig, walkJPEG},
		PNG:  {"image/png", png.DecodeConfig, walkPNG},
		GIF:  {"image/gif", gif.DecodeConfig, walkGIF},
	}
)

// Extensions returns the extensions (lower case, no dot) of the formats that are accepted as
// pictures.
func Extensions() []string { return slices.Sorted(maps.Keys(formats)) }

// CheckImage checks that r is a complete picture of the format that ext (lower case, no dot) names,
// within opts. It decodes no pixels. size is the length of r. CheckImage reads r from its first
// byte, wherever r stood before, and leaves it at any position. Bytes after the end marker of a
// picture are allowed.
//
// The error is a [*ContentError], a [*TooLargeError], or wraps a failure of r.
func CheckImage(r io.ReadSeeker, size int64, ext string, opts Options) (Info, error) {
	format, ok := formats[ext]
	if !ok {
		return Info{}, contentErrorf("a .%s file is not accepted as a picture", shorten(ext))
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
	if err := s.rewind(); err != nil {
		return Info{}, err
	}
	cfg, err := kind.config(s)
	if errors.Is(err, errPNGOverflow) {
		return Info{}, tooLargef("the picture has far more than the %s pixels allowed", thousands(opts.MaxPixels))
	}
	if err != nil {
		return Info{}, refuseRaster(s, format, ext, err)
	}
	if cfg.Width <= 0 || cfg.Height <= 0 {
		return Info{}, contentErrorf("the %s picture has no width or no height", format)
	}
	// No format stores a side over 32 bits, so the product cannot overflow.
	pixels := int64(cfg.Width) * int64(cfg.Height)
	if pixels > opts.MaxPixels {
		return Info{}, tooLargef("the picture has %s pixels, at most %s are allowed",
			thousands(pixels), thousands(opts.MaxPixels))
	}
	if int64(info.scans)*pixels/maxVisits > opts.MaxPixels {
		return Info{}, tooLargef("the JPEG picture has %d scans, too many for its size", info.scans)
	}
	if side := max(cfg.Width, cfg.Height); side > opts.MaxSide {
		return Info{}, tooLargef("the picture has a side of %s pixels, at most %s are allowed",
			thousands(int64(side)), thousands(int64(opts.MaxSide)))
	}
	info.Width, info.Height = cfg.Width, cfg.Height
	if info.FramePixels == 0 {
		info.FramePixels = pixels
	}
	return info, nil
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
	head, err := s.head(sniffSize)
	if err != nil {
		return err
	}
	if found := sniff(head); !within(found, rasters[format].mediaType) && !unknown(found) {
		return contentErrorf("content is %s, the name says .%s", typeName(found, head), ext)
	}
	switch {
	case errors.Is(cause, io.EOF), errors.Is(cause, io.ErrUnexpectedEOF):
		return contentErrorf("content is not a %s picture or is damaged: its end is missing", format)
	case unsupported(cause):
		return contentErrorf("the %s picture uses a feature that is not supported", format)
	}
	return contentErrorf("content is not a %s picture or is damaged", format)
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
