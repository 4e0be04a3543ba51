package imaging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image/png"
	"math"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

var (
	errPNG = errors.New("not the structure of a PNG")
	// errPNGOverflow is the error of image/png for a size whose pixels would overflow its
	// arithmetic.
	errPNGOverflow error = png.UnsupportedError("dimension overflow")
)

// walkPNG goes over the chunks of a PNG (W3C PNG, section 5) to IEND and verifies the checksums of
// critical chunks.
func walkPNG(s *source, opts Options, info *Info) error {
	sig, err := s.next(len(pngSignature))
	if err != nil {
		return err
	}
	if string(sig) != pngSignature {
		return errPNG
	}
	info.keep(0, int64(len(pngSignature)))
	info.view.keep(0, int64(len(pngSignature)))
	c := pngChunks{info: info, frames: frameSum{opts: opts}}
	err = walkBlocks(PNG, "chunks", func() (bool, error) { return c.next(s) })
	if err == nil {
		c.finish(s.offset())
	}
	return err
}

// pngChunks is the state of a walk over chunks.
type pngChunks struct {
	info                  *Info
	frames                frameSum
	header, palette, data bool
	colorType             byte
	exif, iccp            bool
	transparent           bool // a decoder sees a tRNS chunk
	behind                bool // the chunks with pixels, which follow each other, have ended
	colors                pngColors
	credentials           []int
}

// next reads one chunk and reports whether it was the last.
func (c *pngChunks) next(s *source) (done bool, err error) {
	at := s.offset()
	head, err := s.next(8)
	if err != nil {
		return false, err
	}
	size, kind := be32(head), string(head[4:])
	if size > 1<<31-1 {
		return false, errPNG
	}
	if c.info.header && kind == "IDAT" {
		return true, nil
	}
	// W3C PNG 5.4: a decoder that does not know a critical chunk cannot show the image.
	if _, known := keptChunks[kind]; isCritical(kind) && !known {
		return false, png.UnsupportedError("critical chunk")
	}
	kept, err := c.inspect(s, kind, size)
	if err != nil {
		return false, err
	}
	if !c.header {
		return false, errPNG
	}
	// The size of the compressed pixels depends on the image.
	if most := c.frames.opts.MaxChunk; size > most && kind != "IDAT" && kind != "fdAT" {
		return false, tooLargef("a chunk of the PNG image that holds no pixels is larger than %s", bytesize.Format(most))
	}
	visible, err := c.visible(s, kind, size)
	if err != nil {
		return false, err
	}
	if err := skipChunk(s, kind, size); err != nil {
		return false, err
	}
	if kept {
		c.info.keep(at, s.offset())
	}
	if visible {
		c.info.view.keep(at, s.offset())
	}
	return kind == "IEND", nil
}

// finish sets the fields that depend on all chunks.
func (c *pngChunks) finish(end int64) {
	c.info.End = end
	c.info.Frames = max(1, c.frames.count)
	c.info.FramePixels = c.frames.pixels
	c.colors.describe(c.info, c.colorType&pngColor == 0)
	c.info.release(c.credentials)
}

// isCritical reports whether every decoder must know the chunk: its first letter is upper case (W3C
// PNG 5.4).
func isCritical(kind string) bool { return kind[0]&0x20 == 0 }

// Colour types (W3C PNG, section 11.2.1), and the bit of those with colours.
const (
	pngGrey    = 0
	pngColor   = 2
	pngIndexed = 3
)

// visible reports whether the decoder sees a chunk that is next. It needs the critical ones, and a
// tRNS chunk that suits the image. It would refuse the image for a wrong checksum of any other one,
// while browsers and libpng ignore the chunk.
func (c *pngChunks) visible(s *source, kind string, size int64) (bool, error) {
	c.behind = c.behind || c.data && kind != "IDAT"
	switch kind {
	case "IDAT":
		return !c.behind, nil
	case "PLTE": // else it is a suggestion
		return c.colorType == pngIndexed, nil
	case "tRNS":
	default:
		return isCritical(kind), nil
	}
	suits := c.colorType == pngGrey && size == 2 || c.colorType == pngColor && size == 6 ||
		c.colorType == pngIndexed && c.palette && size <= keptChunks[kind]
	if !suits || c.data || c.transparent {
		return false, nil
	}
	data, err := content(s, kind, size)
	c.transparent = data != nil
	return c.transparent, err
}

// skipChunk skips the data of a chunk and verifies the checksum of a critical one.
func skipChunk(s *source, kind string, size int64) error {
	critical := isCritical(kind)
	sum := crc32.ChecksumIEEE([]byte(kind))
	for size > 0 {
		w, err := s.window(1)
		if err != nil {
			return err
		}
		w = w[:min(int64(len(w)), size)]
		if critical {
			sum = crc32.Update(sum, crc32.IEEETable, w)
		}
		size -= int64(len(w))
		if _, err := s.Discard(len(w)); err != nil {
			return err
		}
	}
	stored, err := s.next(4)
	if err != nil {
		return err
	}
	if critical && be32(stored) != int64(sum) {
		return errPNG
	}
	return nil
}

// keptChunks are the chunks that change the rendering: pixels, colours, transparency, pixel shape
// and animation. The value is the largest size by W3C PNG, section 11. All other chunks are
// dropped, because a private or oversized chunk may hold anything.
var keptChunks = map[string]int64{
	"IHDR": 13, "PLTE": 768, "IDAT": math.MaxInt64, "IEND": math.MaxInt64,
	"tRNS": 256, "gAMA": 4, "cHRM": 32, "sRGB": 1, "iCCP": math.MaxInt64, "sBIT": 4, "cICP": 4, "mDCV": 24, "cLLI": 8,
	"bKGD": 6, "pHYs": 9, "sPLT": math.MaxInt64, "hIST": 512, "acTL": 8, "fcTL": 26, "fdAT": math.MaxInt64,
}

// inspect records the properties in a chunk and reports whether the image needs it. It consumes
// nothing.
func (c *pngChunks) inspect(s *source, kind string, size int64) (kept bool, err error) {
	switch kind {
	case "IHDR":
		if c.header {
			return false, errPNG
		}
		c.header = true
		if size < 13 {
			break // refused later, by the decoder
		}
		var b []byte
		if b, err = s.Peek(13); err == nil { // W3C PNG, section 11.2.1
			c.info.Deep = b[8] == 16
			c.colorType = b[9]
			c.info.Interlaced = b[12] == 1
		}
	case "PLTE":
		c.palette = true
	case "IDAT":
		c.data = true
	case "acTL":
		c.info.Animated = c.info.Animated || !c.data // W3C PNG 11.3.6.1: it counts before the first IDAT only
	case "fcTL":
		err = c.frame(s, size)
	case "iCCP", "cICP", "sRGB", "gAMA", "cHRM":
		err = c.color(s, kind, size)
	case "eXIf":
		return c.keepEXIF(s, kind, size)
	case "tEXt", "zTXt", "iTXt", "tIME", "caBX":
		if c.frames.opts.Strip == StripLocation {
			return c.keepDescription(s, kind, size)
		}
	case "IEND":
		if !c.data {
			return false, errPNG
		}
	}
	return c.keeps(kind, size), err
}

// keeps reports whether the image needs a chunk: only the first profile, and frames only of an
// animation.
func (c *pngChunks) keeps(kind string, size int64) bool {
	if kind == "iCCP" {
		first := !c.iccp
		c.iccp = true
		return first
	}
	if !c.info.Animated && (kind == "fcTL" || kind == "fdAT") {
		return false
	}
	most, listed := keptChunks[kind]
	return listed && size <= most
}

// frame counts the frame that an fcTL chunk announces (W3C PNG, section 11.3.6.2).
func (c *pngChunks) frame(s *source, size int64) error {
	if !c.info.Animated || size < 12 {
		return nil
	}
	b, err := s.Peek(12)
	if err != nil {
		return err
	}
	return c.frames.add(be32(b[4:])&(1<<31-1), be32(b[8:])&(1<<31-1))
}

// content returns the data of a chunk, or nil if its checksum is wrong, since readers ignore such a
// chunk. For a chunk larger than the buffer it returns the start, without verifying the checksum.
func content(s *source, kind string, size int64) ([]byte, error) {
	if size > bufferSize-4 {
		return s.Peek(bufferSize)
	}
	b, err := s.Peek(int(size) + 4)
	if err != nil {
		return nil, err
	}
	data, stored := b[:size], b[size:]
	sum := crc32.Update(crc32.ChecksumIEEE([]byte(kind)), crc32.IEEETable, data)
	if be32(stored) != int64(sum) {
		return nil, nil
	}
	return data, nil
}

// color reads a colour chunk. Only the first of its kind before the palette and the pixels counts
// (W3C PNG, 5.6).
func (c *pngChunks) color(s *source, kind string, size int64) error {
	if c.palette || c.data || kind == "iCCP" && c.iccp || kind != "iCCP" && size != keptChunks[kind] {
		return nil
	}
	data, err := content(s, kind, size)
	if err != nil || data == nil {
		return err
	}
	switch kind {
	case "iCCP":
		c.colors.profile = inflateProfile(data, s.offset(), size)
	case "sRGB":
		c.colors.srgb = true
	default:
		if seen := map[string]*[]byte{
			"cICP": &c.colors.cicp, "gAMA": &c.colors.gamma, "cHRM": &c.colors.chroma,
		}[kind]; *seen == nil {
			*seen = bytes.Clone(data)
		}
	}
	return nil
}

// keepEXIF reads the orientation from the first EXIF chunk. It reports whether the chunk remains.
// Otherwise one with the rest of it replaces it. Behind the first pixels, browsers do not look for
// an orientation.
func (c *pngChunks) keepEXIF(s *source, kind string, size int64) (kept bool, err error) {
	if c.exif && !c.data {
		return false, nil
	}
	data, err := content(s, kind, size)
	if err != nil {
		return false, err
	}
	orientation := Upright
	if !c.data {
		c.exif = true
		orientation = parseOrientation(data)
		c.info.Orientation = orientation
	}
	if int64(len(data)) == size { // it is whole
		return c.rewrite(kind, data, c.frames.opts.Strip.exif(data, orientation)), nil
	}
	if orientation == Upright {
		return false, nil
	}
	return c.rewrite(kind, data, orientation.tiff()), nil
}

// rewrite replaces a chunk by one with the rest of its data. It reports whether the chunk remains
// because it has nothing else.
func (c *pngChunks) rewrite(kind string, data, rest []byte) (kept bool) {
	switch {
	case rest == nil:
		return false
	case bytes.Equal(data, rest):
		return true
	}
	c.info.insert(c.info.mark(), pngChunk(kind, rest))
	return false
}

// pngKeywords are those of W3C PNG, section 11.3.3.1, for a text that describes the image.
var pngKeywords = []string{
	"Title", "Author", "Description", "Copyright", "Creation Time", "Software", "Disclaimer", "Warning", "Source", "Comment",
}

// pngXMP begins an iTXt chunk with XMP that is not compressed: the keyword, two flags, and an empty
// language and translation (ISO 16684-3).
const pngXMP = "XML:com.adobe.xmp\x00\x00\x00\x00\x00"

// keepDescription reports whether the mode [StripLocation] keeps a chunk that describes the image.
func (c *pngChunks) keepDescription(s *source, kind string, size int64) (kept bool, err error) {
	switch kind {
	case "tIME":
		return size == 7, nil
	case "caBX": // credentials of C2PA: eight bytes before the data, four behind
		c.credentials = append(c.credentials, c.info.hold(s.offset()-8, s.offset()+size+4))
		return false, nil
	}
	data, err := content(s, kind, size)
	if err != nil || data == nil {
		return false, err
	}
	if packet, ok := bytes.CutPrefix(data, []byte(pngXMP)); ok && kind == "iTXt" {
		if int64(len(data)) < size {
			return false, nil
		}
		rest := xmpFilter{describe: true}.apply(packet)
		if rest != nil {
			rest = append([]byte(pngXMP), rest...)
		}
		return c.rewrite(kind, data, rest), nil
	}
	keyword, _, _ := bytes.Cut(data, []byte{0})
	return slices.Contains(pngKeywords, string(keyword)), nil
}

// pngChunk returns a chunk of a PNG.
func pngChunk(kind string, data []byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), kind...)
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}
