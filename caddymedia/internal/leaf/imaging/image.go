// Package imaging checks uploaded content against its file name, checks the size of images, and
// removes their metadata. It does not decode pixels, which package render does. Begin with
// [CheckImage] and [CheckFile].
//
// [CheckImage] validates the structure of an image without decoding pixels. The extension selects
// the format. The decoder of the format, or for newer formats the walk itself, reads the header. A
// walk over all blocks verifies that the file is complete. image.Decode is never used, because any
// package of the process may register a decoder there. For AVIF and HEIC there is no decoder. SVG
// images are parsed as XML and checked against allow-lists, but never changed. [CheckFile] is for
// all other files: it refuses content that contradicts the extension.
//
// The walk also records, in the [Info], the properties that an encoder needs and the position of
// each essential part. [Info.Stripped] copies only those parts, without encoding them again. They
// are selected by allow-lists, because an unknown block may contain anything.
//
// Time and memory are limited for all input.
package imaging

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/svg"
)

// optional are the extensions of formats that a caller may accept in addition.
var optional = []string{"webp", "avif", "heic"}

// Extensions returns the extensions (lower case, no dot) of the formats that are always accepted as
// images.
func Extensions() []string {
	names := slices.Sorted(maps.Keys(formats))
	return slices.DeleteFunc(names, func(ext string) bool { return slices.Contains(optional, ext) })
}

// JPEGNames are other extensions of JPEG files, as Windows and older programs write them. No image
// is stored under them.
var JPEGNames = []string{"jfif", "jpe", "pjp", "pjpeg"}

// OptionalExtensions returns the extensions (lower case, no dot) of the other formats that
// [CheckImage] knows. A caller may accept them as well.
func OptionalExtensions() []string { return slices.Clone(optional) }

// HasVariant reports whether images of the format may have a WebP variant. A WebP needs none.
func (f Format) HasVariant() bool { return f == JPEG || f == PNG || f == GIF }

// article returns the name of the format with its article.
func (f Format) article() string {
	if f == AVIF {
		return "an " + string(f)
	}
	return "a " + string(f)
}

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

// SVGMode is the treatment of SVG images.
type SVGMode string

const (
	// SVGReject refuses an image with active content, external references or its own declarations.
	// The default.
	SVGReject SVGMode = "reject"
	// SVGKeep accepts every XML document with an SVG root.
	SVGKeep SVGMode = "keep"
	// SVGOff accepts no SVG image.
	SVGOff SVGMode = "off"
)

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

	header bool // see [ReadHeader]
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
		JPEG: {"image/jpeg", nil, walkJPEG},
		PNG:  {"image/png", png.DecodeConfig, walkPNG},
		GIF:  {"image/gif", nil, walkGIF},
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
		return checkSVG(s, size, opts)
	}
	return checkRaster(s, size, format, ext, opts.withDefaults())
}

// ReadHeader is [CheckImage] for an image that passed it before. It reads up to the place that says
// the size and the orientation, which is in the first 64 KiB of nearly all images, and does not
// check the rest. r may have only the first bytes of the size. The result has no Profile, has one
// frame, and cannot be stripped.
func ReadHeader(r io.ReadSeeker, size int64, ext string, opts Options) (Info, error) {
	opts.header = true
	info, err := CheckImage(r, size, ext, opts)
	info.Frames = 1
	return info.Header(), err
}

// Header returns what [ReadHeader] returns, which takes little memory.
func (i Info) Header() Info {
	i.Profile, i.colors = nil, foreignColors{}
	i.layout, i.view, i.frames = layout{}, layout{}, nil
	return i
}

// checkSVG checks an SVG image, which has no metadata to remove.
func checkSVG(s *source, size int64, opts Options) (Info, error) {
	info := Info{Format: SVG, Frames: 1, Orientation: Upright, End: size, size: size}
	if opts.header {
		info.Width, info.Height = svg.Size(s.Reader)
		return info, s.ioError()
	}
	if opts.SVG == SVGOff {
		return Info{}, contentErrorf("SVG images are not accepted here")
	}
	err := svg.Check(s.Reader, size, opts.SVG != SVGKeep)
	if failed := s.ioError(); failed != nil {
		return Info{}, failed
	}
	if refused, ok := errors.AsType[*svg.Error](err); ok {
		return Info{}, refuseSVG(s, refused)
	}
	if err := s.rewind(); err != nil {
		return Info{}, err
	}
	info.Width, info.Height = svg.Size(s.Reader)
	info.keep(0, size)
	return info, s.ioError()
}

// refuseSVG returns the error for a refused image, or names another type of content.
func refuseSVG(s *source, refused *svg.Error) error {
	if refused.NoRoot {
		head, err := s.head(sniffSize)
		if err != nil {
			return err
		}
		found := sniff(head)
		// The sniffer may take XML for plain text. The error of the parser is then more precise.
		markup := unknown(found) || is(found, "image/svg+xml") || within(found, "text/xml") ||
			is(found, plainText) && bytes.HasPrefix(skipComments(head), []byte("<"))
		if !markup {
			return contentErrorf("content is %s, the name says .svg", typeName(found, head))
		}
	}
	if refused.TooLarge {
		return &TooLargeError{Message: refused.Message}
	}
	return &ContentError{Message: refused.Message}
}

// checkRaster walks before it decodes. The walk is bounded for all input; the search of a decoder
// for a header is not.
func checkRaster(s *source, size int64, format Format, ext string, opts Options) (Info, error) {
	info := Info{Format: format, Frames: 1, Orientation: Upright, size: size, header: opts.header}
	if err := rasters[format].walk(s, opts, &info); err != nil {
		return Info{}, refuseRaster(s, format, ext, err)
	}
	info.view.sort()
	if err := info.readSize(s, ext, opts); err != nil {
		return Info{}, err
	}
	if err := info.checkSize(opts); err != nil {
		return Info{}, err
	}
	if opts.Strip == StripOff {
		info.layout = layout{}
		info.keep(0, size)
	}
	info.sort()
	return info, nil
}

// readSize sets the size of the image that the decoder of the format reads.
func (i *Info) readSize(s *source, ext string, opts Options) error {
	if read := rasters[i.Format].config; read != nil {
		if err := s.rewind(); err != nil {
			return err
		}
		cfg, err := read(i.view.reader(s))
		if errors.Is(err, errPNGOverflow) {
			return tooLargef("the image has far more than the %s pixels allowed", thousands(opts.MaxPixels))
		}
		if err != nil {
			return refuseRaster(s, i.Format, ext, err)
		}
		i.Width, i.Height = cfg.Width, cfg.Height
	}
	if i.FramePixels == 0 {
		i.FramePixels = int64(i.Width) * int64(i.Height)
	}
	return nil
}

// walkBlocks calls next until it reports the end of an image. It refuses an image of more than
// maxBlocks parts.
func walkBlocks(format Format, parts string, next func() (done bool, err error)) error {
	for range maxBlocks {
		if done, err := next(); done || err != nil {
			return err
		}
	}
	return tooLargef("the %s image has too many %s", format, parts)
}

// checkSize checks the size of the image, as it is stored, against the limits. Its orientation may
// exchange the sides, and each image inside an AVIF or HEIC is checked too.
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
	if content, ok := errors.AsType[*ContentError](cause); ok {
		return content
	}
	if large, ok := errors.AsType[*TooLargeError](cause); ok {
		return large
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

// Info describes an image that passed [CheckImage].
type Info struct {
	// Format is the format of the content.
	Format Format
	// Width and Height are the stored sides in pixels, before Orientation is applied. Of an AVIF or
	// HEIC they are the sides of the primary image as it is viewed, of an SVG those of [svg.Size].
	Width, Height int
	// Frames is 1 for a still image.
	Frames int
	// FramePixels is the sum of the areas of all frames of an animation; for a still image, Width
	// times Height.
	FramePixels int64
	// Animated reports a GIF or WebP of more than one frame, or an animated PNG with any number of
	// frames.
	Animated bool
	// Loops is the number of plays of a WebP animation; 0 means endless.
	Loops int

	// Orientation is the turn of the stored pixels for viewing; [Upright] by default.
	Orientation Orientation
	// Profile is the ICC profile of the colours, at most 64 KiB. Without one they are those of sRGB,
	// once [Info.ToSRGB] has converted the pixels.
	Profile []byte
	// ColorLoss is the reason why the pixels would have other colours in another file. It is empty
	// if they have not.
	ColorLoss string

	// Progressive reports that the scans of a JPEG refine each other, so that a decoder must hold
	// all of them.
	Progressive bool
	// Components is the number of colour components of a JPEG: 1, 3 or 4; 0 for other formats.
	Components int
	// Samples is the number of samples that a JPEG stores for two pixels: 3 for chroma at half the
	// size both ways, 6 for full chroma; 0 for other formats.
	Samples int
	// RGB reports that the components of a JPEG may be red, green and blue rather than luma and
	// chroma.
	RGB bool
	// Interlaced reports that the pixels of a PNG come in seven passes.
	Interlaced bool
	// Deep reports that a PNG has 16 bits per sample.
	Deep bool
	// HDR reports that a JPEG says of itself that it has a gain map, which only the file itself has:
	// others that are made of its pixels have a standard dynamic range.
	HDR bool
	// Alpha reports that a WebP image may have transparent pixels.
	Alpha bool
	// Lossless reports that pixels of a WebP image are stored without loss.
	Lossless bool

	// End is the offset after the end marker of the image. Of the bytes after it only a gain map is
	// a part of the image. For SVG it is the length of the file.
	End int64

	header bool // the walk ends where size and orientation are known; see [ReadHeader]
	colors foreignColors

	scans int // of a JPEG
	// restarts reports restart markers in a JPEG that Go's decoder miscounts: those in a scan of
	// one component that has several blocks in an interleaved scan.
	restarts bool
	frames   []webpFrame // of a WebP, one of a still image
	size     int64       // of the file
	view     layout      // what a decoder reads: the parts that it needs, in a form that it knows
	layout
}

// UprightSize returns the sides in pixels as viewed, with Orientation applied.
func (i Info) UprightSize() image.Point {
	if i.Orientation >= 5 {
		return image.Pt(i.Height, i.Width)
	}
	return image.Pt(i.Width, i.Height)
}

// HasMetadata reports whether [Info.Stripped] differs from the file.
func (i Info) HasMetadata() bool { return i.kept < i.size }

// Stripped returns the bytes of the image without the metadata that [Options.Strip] names. Every
// decoder sees the same pixels. r must be the file that Info describes. Reading the result moves r.
// An SVG is returned unchanged.
//
// Pixels, colours, animation and the orientation from EXIF remain. Bytes after the end marker are
// dropped. In an AVIF or HEIC, metadata is overwritten, so that all positions in the file remain
// valid.
func (i Info) Stripped(r io.ReadSeeker) io.Reader {
	return &stripReader{in: r, layout: i.layout}
}

// Decode decodes a JPEG, PNG or WebP image that passed [CheckImage]. The pixels are returned as
// stored, without applying the orientation. Of an animated PNG it returns only the still image,
// of an animated WebP the first canvas.
//
// A lossy WebP without alpha becomes an *image.YCbCr of ratio 4:2:0 in the full range of JPEG, any
// other WebP an *image.NRGBA. The memory used is that of the decoder of the standard library, or
// for a WebP that of golang.org/x/image: per pixel 1.5 bytes (lossy), 5 (lossless) or 11 (lossy
// with alpha), and up to 150 MiB for the codes of a hostile lossless image or alpha.
//
// The error is a [*ContentError] for a truncated or damaged image, or wraps a failure of r.
func Decode(r io.ReadSeeker, info Info) (image.Image, error) {
	switch info.Format {
	case PNG:
		return decodeWith(r, info, func(s *source) (image.Image, error) { return png.Decode(info.view.reader(s)) })
	case WebP:
		return decodeWebP(r, info)
	default:
		return decodeWith(r, info, func(s *source) (image.Image, error) { return jpeg.Decode(info.view.reader(s)) })
	}
}

func decodeWith[T any](r io.ReadSeeker, info Info, decode func(*source) (T, error)) (T, error) {
	var none T
	s, err := newSource(r)
	if err != nil {
		return none, err
	}
	defer s.release()
	img, err := decode(s)
	failed := s.ioError()
	switch {
	case err == nil:
		return img, nil
	case failed != nil:
		return none, failed
	case unsupported(err):
		return none, contentErrorf("the %s image uses a feature that is not supported", info.Format)
	case info.restarts:
		return none, contentErrorf("the JPEG image has restart markers in a scan of one colour: save it again as an ordinary JPEG")
	case errors.Is(err, errNoColors):
		return none, contentErrorf("the GIF image has %v", err)
	}
	return none, contentErrorf("the %s image is damaged: not all of it can be decoded", info.Format)
}

// unsupported reports whether a decoder, or a walk, refused a feature.
func unsupported(cause error) bool {
	var noJPEG jpeg.UnsupportedError
	var noPNG png.UnsupportedError
	return errors.As(cause, &noJPEG) || errors.As(cause, &noPNG) || errors.Is(cause, errUnsupported)
}

// ContentError reports content that does not match its name, is damaged, or contains something that
// is not accepted. The message is for the uploader. The HTTP status is 415.
type ContentError struct {
	// Message describes the problem so that the uploader can fix it.
	Message string
}

// Error returns the message.
func (e *ContentError) Error() string { return e.Message }

// TooLargeError reports content over a limit: pixels, sides, frames, chunks, or the size of an SVG.
// The message is for the uploader. The HTTP status is 413.
type TooLargeError struct {
	// Message names the limit and the value that exceeds it.
	Message string
}

// Error returns the message.
func (e *TooLargeError) Error() string { return e.Message }

func contentErrorf(format string, args ...any) error {
	return &ContentError{Message: fmt.Sprintf(format, args...)}
}

func tooLargef(format string, args ...any) error {
	return &TooLargeError{Message: fmt.Sprintf(format, args...)}
}

// shorten returns a name chosen by the uploader in a form fit for a message: short, and valid
// UTF-8.
func shorten(name string) string {
	const most = 40
	name = strings.ToValidUTF8(name, "\uFFFD")
	if r := []rune(name); len(r) > most {
		return string(r[:most]) + "..."
	}
	return name
}

// thousands formats n with separators: 50,000,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
