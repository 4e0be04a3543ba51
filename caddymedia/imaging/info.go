package imaging

import (
	"image"
	"io"
)

// Info describes an image that passed [CheckImage].
type Info struct {
	// Format is the format of the content.
	Format Format
	// Width and Height are the stored sides in pixels, before Orientation is applied; 0 for SVG. Of
	// an AVIF or HEIC they are the sides of the primary image as it is viewed.
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
	// Profile is the ICC profile of the colours, at most 64 KiB, or one made from the gAMA and cHRM
	// chunks of a PNG. It is nil where a browser uses sRGB.
	Profile []byte
	// ColorLoss is the reason why the pixels would have other colours in another file. It is empty
	// if Profile is enough.
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

	scans  int         // of a JPEG
	frames []webpFrame // of a WebP, one of a still image
	size   int64       // of the file
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
