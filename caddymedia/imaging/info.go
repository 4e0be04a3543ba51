package imaging

import "io"

// Info describes a picture that passed.
type Info struct {
	// Format is what the picture is.
	Format Format
	// Width and Height are in pixels as stored, before any turn by Orientation; 0 for SVG.
	Width, Height int
	// Frames is 1 for a still picture.
	Frames int
	// FramePixels is the sum of the areas of all frames of an animation; Width times Height for a still picture.
	FramePixels int64
	// Animated tells that the picture is a GIF of more than one frame, or an animated PNG, however many it has.
	Animated bool

	// Orientation says how to turn the stored pixels for viewing; [Upright] where nothing says so.
	Orientation Orientation
	// Profile is the ICC profile of the colours, at most 64 KiB, or the one that the gAMA and cHRM
	// chunks of a PNG describe. It is nil where a browser takes the colours for sRGB.
	Profile []byte
	// ColorLoss is why the pixels of the picture would have other colours in another file, in
	// words. It is empty where Profile is enough.
	ColorLoss string

	// Progressive tells that the scans of a JPEG refine each other, so that a decoder must hold all of them.
	Progressive bool
	// Components is the number of colour components of a JPEG: 1, 3 or 4; 0 for every other format.
	Components int
	// Samples is how many samples a JPEG stores for two pixels: 3 for chroma at half the size both ways, 6 for all of
	// it; 0 for every other format.
	Samples int
	// RGB tells that the components of a JPEG may be red, green and blue rather than luma and chroma.
	RGB bool
	// Interlaced tells that the pixels of a PNG come in seven passes.
	Interlaced bool
	// Deep tells that a PNG has 16 bits a sample.
	Deep bool

	// End is the offset behind the end marker of the picture. What follows in the file is no part of it. The length
	// of the file for SVG.
	End int64

	scans int   // of a JPEG
	size  int64 // of the file
	layout
}

// HasMetadata tells whether [Info.Stripped] gives other bytes than those of the file.
func (i Info) HasMetadata() bool { return i.kept < i.size }

// Stripped gives the bytes of the picture without its metadata, whose pixels are the same to every decoder. r is the
// file that Info is of; it is moved while the result is read. An SVG stays as it is.
//
// What remains is what it takes to show the picture: pixels, colours, animation, and of EXIF the orientation alone.
// Bytes behind the end marker go as well.
func (i Info) Stripped(r io.ReadSeeker) io.Reader {
	return &stripReader{in: r, layout: i.layout}
}
