package imaging_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// verdict is the outcome of a check.
type verdict string

const (
	passes   verdict = "passes"
	refused  verdict = "content error"
	tooLarge verdict = "too large"
	failed   verdict = "another error"
)

func verdictOf(err error) verdict {
	var content *imaging.ContentError
	var large *imaging.TooLargeError
	switch {
	case err == nil:
		return passes
	case errors.As(err, &content):
		return refused
	case errors.As(err, &large):
		return tooLarge
	}
	return failed
}

// allocated returns the memory that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// stripsWhole strips an image, which keeps its Info and has no further metadata then.
func stripsWhole(t *testing.T, data []byte, ext string) (info, again imaging.Info, once []byte) {
	t.Helper()
	info, once = strip(t, data, ext)
	again, twice := strip(t, once, ext)
	want, got := described(info), described(again)
	want.End = int64(len(once))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("was %+v, is %+v", want, got)
	}
	if again.HasMetadata() || !bytes.Equal(once, twice) || info.HasMetadata() == bytes.Equal(once, data) {
		t.Errorf("HasMetadata is %t, then %t", info.HasMetadata(), again.HasMetadata())
	}
	return info, again, once
}

func check(data []byte, ext string, opts imaging.Options) (imaging.Info, error) {
	return imaging.CheckImage(bytes.NewReader(data), int64(len(data)), ext, opts)
}

// drawing returns an image that does not compress well.
func drawing(width, height int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>7 ^ i*31)
	}
	return img
}

func drawJPEG(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	imagingtest.Must(t, jpeg.Encode(&b, drawing(width, height), &jpeg.Options{Quality: 90}))
	return b.Bytes()
}

func drawPNG(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	imagingtest.Must(t, png.Encode(&b, drawing(width, height)))
	return b.Bytes()
}

func drawGIF(t testing.TB, width, height, frames int) []byte {
	t.Helper()
	g := &gif.GIF{Config: image.Config{Width: width, Height: height}}
	palette := color.Palette{color.Black, color.White}
	for range frames {
		g.Image = append(g.Image, image.NewPaletted(image.Rect(0, 0, width, height), palette))
		g.Delay = append(g.Delay, 10)
	}
	var b bytes.Buffer
	imagingtest.Must(t, gif.EncodeAll(&b, g))
	return b.Bytes()
}

// resizedJPEG patches the size in the frame header, which is the cheapest bomb.
func resizedJPEG(t testing.TB, data []byte, width, height int) []byte {
	t.Helper()
	i := bytes.Index(data, []byte{0xFF, 0xC0})
	if i < 0 {
		t.Fatal("no baseline frame header")
	}
	data = bytes.Clone(data)
	binary.BigEndian.PutUint16(data[i+5:], uint16(height))
	binary.BigEndian.PutUint16(data[i+7:], uint16(width))
	return data
}

func chunk(kind string, data []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

const pngSignature = "\x89PNG\r\n\x1a\n"

// resizedPNG replaces the header chunk by one with another size.
func resizedPNG(data []byte, width, height uint32) []byte {
	header := binary.BigEndian.AppendUint32(nil, width)
	header = binary.BigEndian.AppendUint32(header, height)
	header = append(header, data[24:29]...)
	return append(append([]byte(pngSignature), chunk("IHDR", header)...), data[33:]...)
}

// withChunks inserts chunks right after the header.
func withChunks(data []byte, chunks ...[]byte) []byte {
	out := bytes.Clone(data[:33])
	for _, c := range chunks {
		out = append(out, c...)
	}
	return append(out, data[33:]...)
}

// frameChunk returns an APNG frame control of the size.
func frameChunk(width, height uint32) []byte {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), width)
	b = binary.BigEndian.AppendUint32(b, height)
	return chunk("fcTL", append(b, make([]byte, 14)...))
}

// manyFrames returns a GIF of n frames of a size, without pixels.
func manyFrames(n, width, height int) []byte {
	le := binary.LittleEndian
	b := []byte("GIF89a")
	b = le.AppendUint16(le.AppendUint16(b, uint16(width)), uint16(height))
	b = append(b, 0, 0, 0)
	for range n {
		b = append(b, 0x2C, 0, 0, 0, 0)
		b = le.AppendUint16(le.AppendUint16(b, uint16(width)), uint16(height))
		b = append(b, 0, 2, 0)
	}
	return append(b, 0x3B)
}

const svgOpen = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">`

// svg wraps body in a root element.
func svg(body string) string { return svgOpen + body + `</svg>` }

// hiddenFrame returns a GIF with an extension. A decoder that assumes the size of the first block
// of the extension finds a second frame in it.
func hiddenFrame(extension string) []byte {
	frame := manyFrames(1, 9, 9)[13:]
	inside := append(make([]byte, 12), 0)
	inside = append(inside, frame[:len(frame)-1]...)
	return joined(manyFrames(1, 9, 9)[:13], []byte("!"+extension), inside, frame)
}

// described returns the exported fields of an Info.
func described(i imaging.Info) imaging.Info {
	return imaging.Info{
		Format: i.Format, Width: i.Width, Height: i.Height, Frames: i.Frames, FramePixels: i.FramePixels,
		Animated: i.Animated, Loops: i.Loops, Orientation: i.Orientation, Profile: i.Profile, Progressive: i.Progressive,
		Components: i.Components, Samples: i.Samples, RGB: i.RGB, Interlaced: i.Interlaced, Deep: i.Deep,
		Alpha: i.Alpha, Lossless: i.Lossless, End: i.End,
	}
}

// strip checks data and returns it without metadata.
func strip(t testing.TB, data []byte, ext string) (imaging.Info, []byte) {
	t.Helper()
	return stripBy(t, data, ext, imaging.StripOn)
}

func stripBy(t testing.TB, data []byte, ext string, mode imaging.StripMode) (imaging.Info, []byte) {
	t.Helper()
	info, err := check(data, ext, imaging.Options{Strip: mode})
	imagingtest.Must(t, err)
	stripped, err := io.ReadAll(info.Stripped(bytes.NewReader(data)))
	imagingtest.Must(t, err)
	return info, stripped
}

// drawGrey draws a grey JPEG and a grey PNG of 16 bits.
func drawGrey(t testing.TB, width, height int) (jpg, deep []byte) {
	t.Helper()
	grey := image.NewGray16(image.Rect(0, 0, width, height))
	for i := range grey.Pix {
		grey.Pix[i] = byte(i * 7)
	}
	small := image.NewGray(grey.Rect)
	small.SetGray(1, 1, color.Gray{Y: 200})
	var a, b bytes.Buffer
	imagingtest.Must(t, jpeg.Encode(&a, small, nil))
	imagingtest.Must(t, png.Encode(&b, grey))
	return a.Bytes(), b.Bytes()
}

// headerJPEG returns a JPEG of 30 x 20 without pixels. It has one component for each of the
// sampling factors.
func headerJPEG(sof byte, sampling ...byte) []byte {
	n := byte(len(sampling))
	frame, scan := "\x08\x00\x14\x00\x1e"+string(rune(n)), string(rune(n))
	for i, s := range sampling {
		frame += string([]byte{byte(i + 1), s, 0})
		scan += string([]byte{byte(i + 1), 0})
	}
	return joined([]byte{0xFF, 0xD8}, quantTable(0), textSegment(sof, frame), textSegment(0xDA, scan+"\x00\x3f\x00"), []byte{0x55, 0xFF, 0xD9})
}

// quantTable returns a segment with a quantization table.
func quantTable(number byte) []byte {
	return segment(0xDB, append([]byte{number}, bytes.Repeat([]byte{1}, 64)...))
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// segment returns a segment of a JPEG.
func segment(marker byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0xFF, marker}, uint16(2+len(data))), data...)
}

func textSegment(marker byte, data string) []byte { return segment(marker, []byte(data)) }

// withSegments inserts segments right after the start of a JPEG.
func withSegments(data []byte, segments ...[]byte) []byte {
	return joined(data[:2], joined(segments...), data[2:])
}

// beforeEnd inserts parts before the end marker of a JPEG or before the last chunk of a PNG.
func beforeEnd(data []byte, size int, parts ...[]byte) []byte {
	i := len(data) - size
	return joined(data[:i], joined(parts...), data[i:])
}

// interlaced sets the interlace flag in the header of a PNG.
func interlaced(data []byte) []byte {
	header := bytes.Clone(data[16:29])
	header[12] = 1
	return joined(data[:8], chunk("IHDR", header), data[33:])
}

// tiffEntry is an entry of a directory: a tag, a type, a count, and the four bytes of the value.
type tiffEntry struct {
	tag, kind uint16
	count     uint32
	value     [4]byte
}

// exif builds a TIFF structure of one directory.
func exif(order binary.AppendByteOrder, entries ...tiffEntry) []byte {
	b := []byte("MM\x00*")
	if order.String() == binary.LittleEndian.String() {
		b = []byte("II*\x00")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, uint16(len(entries)))
	for _, e := range entries {
		b = order.AppendUint16(order.AppendUint16(b, e.tag), e.kind)
		b = append(order.AppendUint32(b, e.count), e.value[:]...)
	}
	return order.AppendUint32(b, 0)
}

// turned returns EXIF with an orientation, a camera, and a location in an area that readers of
// orientations ignore.
func turned(orientation byte) []byte {
	return append(exif(
		binary.BigEndian,
		tiffEntry{0x010F, 2, 4, [4]byte{'C', 'a', 'm', 0}},
		tiffEntry{0x0112, 3, 1, [4]byte{0, orientation}},
		tiffEntry{0x8825, 4, 1, [4]byte{0, 0, 0, 62}},
	), "GPS 0.5N 0.5E"...)
}

// onlyTurned returns EXIF with an orientation alone.
func onlyTurned(orientation byte) []byte {
	return exif(binary.BigEndian, tiffEntry{0x0112, 3, 1, [4]byte{0, orientation}})
}

func exifSegment(tiff []byte) []byte { return segment(0xE1, append([]byte("Exif\x00\x00"), tiff...)) }

// profile returns an ICC profile of a colour space, with only the fields that are used here.
func profile(space string, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * i >> 5)
	}
	copy(b[16:], space)
	copy(b[36:], "acsp")
	return b
}

// iccSegment returns one part of a profile.
func iccSegment(number, of byte, data []byte) []byte {
	return segment(0xE2, append([]byte{'I', 'C', 'C', '_', 'P', 'R', 'O', 'F', 'I', 'L', 'E', 0, number, of}, data...))
}

func deflated(data []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

func profileChunk(data []byte) []byte {
	return chunk("iCCP", append([]byte("a name\x00\x00"), deflated(data)...))
}

// drawWebP encodes an image as a simple or extended WebP file.
func drawWebP(t testing.TB, img image.Image, opts webp.Options) []byte {
	t.Helper()
	encoder, err := webp.New()
	imagingtest.Must(t, err)
	file, err := encoder.Encode(t.Context(), img, opts)
	imagingtest.Must(t, err)
	return file
}

// opaque returns image without transparency, and with whole squares of one colour, which survive
// lossy encoding.
func opaque(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Rect.Dx() * img.Rect.Dy() {
		x, y := i%width/16, i/width/16
		copy(img.Pix[4*i:], []byte{byte(40 + 60*x), byte(200 - 50*y), byte(30 * (x + y)), 255})
	}
	return img
}

// shaded returns opaque with a transparency that falls from left to right.
func shaded(width, height int) *image.NRGBA {
	img := opaque(width, height)
	for i := range width * height {
		img.Pix[4*i+3] = byte(255 - 200*(i%width)/width)
	}
	return img
}

// riffFile returns a file of chunks. Its size may be odd.
func riffFile(chunks ...[]byte) []byte {
	data := joined([]byte("WEBP"), joined(chunks...))
	return webpChunk("RIFF", data)[:8+len(data)]
}

// webpChunk returns a chunk with its padding.
func webpChunk(id string, data []byte) []byte {
	b := append(binary.LittleEndian.AppendUint32([]byte(id), uint32(len(data))), data...)
	return append(b, make([]byte, len(data)%2)...)
}

func uint24(n int) []byte { return []byte{byte(n), byte(n >> 8), byte(n >> 16)} }

// extended returns a VP8X chunk.
func extended(flags byte, width, height int) []byte {
	return webpChunk("VP8X", joined([]byte{flags, 0, 0, 0}, uint24(width-1), uint24(height-1)))
}

// Flags of a VP8X chunk.
const (
	flagAnimation, flagXMP, flagEXIF, flagAlpha, flagProfile = 2, 4, 8, 16, 32
)

// bitstream returns the chunks with the pixels of an encoded file.
func bitstream(file []byte) []byte {
	if string(file[12:16]) == "VP8X" {
		return file[30:]
	}
	return file[12:]
}

func animHead(loops byte) []byte { return webpChunk("ANIM", []byte{0, 0, 255, 255, loops, 0}) }

// frameWebP returns an ANMF chunk. The flag 1 disposes, 2 does not blend.
func frameWebP(area image.Rectangle, ms int, flags byte, chunks ...[]byte) []byte {
	return webpChunk("ANMF", joined(uint24(area.Min.X/2), uint24(area.Min.Y/2), uint24(area.Dx()-1), uint24(area.Dy()-1),
		uint24(ms), []byte{flags}, joined(chunks...)))
}

// lossyHead returns a VP8 chunk of a size, without pixels.
func lossyHead(width, height int) []byte {
	return webpChunk("VP8 ", []byte{0, 0, 0, 0x9d, 1, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
}

// losslessHead returns a VP8L chunk of a size, without pixels.
func losslessHead(width, height int) []byte {
	return webpChunk("VP8L", binary.LittleEndian.AppendUint32([]byte{0x2F}, uint32(width-1|(height-1)<<14)))
}

// flatAnimation returns an animation of n frames of a size, without pixels.
func flatAnimation(n, width, height int) []byte {
	frame := frameWebP(image.Rect(0, 0, width, height), 100, 0, lossyHead(width, height))
	return riffFile(extended(flagAnimation, width, height), animHead(3), bytes.Repeat(frame, n))
}

// decodedWebP checks and decodes a file.
func decodedWebP(t testing.TB, file []byte) image.Image {
	t.Helper()
	info, err := check(file, "webp", imaging.Options{})
	imagingtest.Must(t, err)
	img, err := imaging.Decode(bytes.NewReader(file), info)
	imagingtest.Must(t, err)
	return img
}

// fixture returns a file of testdata. These are drawings of 64 x 48 or 64 x 64 pixels by avifenc
// and heif-enc, with EXIF that names a camera and a location, and XMP:
//   - turned.avif: with EXIF, XMP and a rotation
//   - grid.avif: two tiles
//   - sequence.avif: two frames
//   - photo.heic: with EXIF and XMP
//   - thumbnail.heic: the same with a thumbnail
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	imagingtest.Must(t, err)
	return data
}

// bmffBox returns a box.
func bmffBox(kind string, parts ...[]byte) []byte {
	data := joined(parts...)
	return joined(binary.BigEndian.AppendUint32(nil, uint32(8+len(data))), []byte(kind), data)
}

// fullBox returns a box with a version and without flags.
func fullBox(kind string, version byte, parts ...[]byte) []byte {
	return bmffBox(kind, []byte{version, 0, 0, 0}, joined(parts...))
}

func u16(values ...int) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, uint16(v))
	}
	return b
}

func u32(values ...int) (b []byte) {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// bmffItem is an item of heif. Its number is its place in the list, from 1.
type bmffItem struct {
	kind          string
	content       string
	width, height int
	inputs        []int
	inBox         bool // in idat
}

// heif returns a file of items, of which the first is the primary one. more are boxes in the meta
// box.
func heif(brand string, items []bmffItem, more ...[]byte) []byte {
	head := bmffBox("ftyp", []byte(brand), u32(0), []byte("mif1"+brand))
	var refs, idat, mdat, sizes, uses []byte
	infos := make([]byte, 0, 21*len(items))
	for i, it := range items {
		id := i + 1
		infos = append(infos, fullBox("infe", 2, u16(id, 0), []byte(it.kind), []byte{0})...)
		if it.inputs != nil {
			refs = append(refs, bmffBox("dimg", u16(id, len(it.inputs)), u16(it.inputs...))...)
		}
		if it.width > 0 {
			sizes = append(sizes, fullBox("ispe", 0, u32(it.width, it.height))...)
			uses = append(uses, joined(u16(id), []byte{1, byte(len(sizes) / 20)})...)
		}
	}
	meta := func(start int) []byte {
		places := make([]byte, 0, 16*len(items))
		idat, mdat = nil, nil
		for i, it := range items {
			method, at := 0, start+len(mdat)
			if it.inBox {
				method, at = 1, len(idat)
				idat = append(idat, it.content...)
			} else {
				mdat = append(mdat, it.content...)
			}
			places = append(places, joined(u16(i+1, method, 0, 1), u32(at, len(it.content)))...)
		}
		return fullBox("meta", 0, fullBox("hdlr", 0, u32(0), []byte("pict"), u32(0, 0, 0), []byte{0}), fullBox("pitm", 0, u16(1)),
			fullBox("iinf", 0, u16(len(items)), infos), fullBox("iref", 0, refs),
			bmffBox("iprp", bmffBox("ipco", sizes), fullBox("ipma", 0, u32(len(uses)/4), uses)),
			bmffBox("idat", idat), fullBox("iloc", 1, []byte{0x44, 0}, u16(len(items)), places), joined(more...))
	}
	size := len(meta(0))
	return joined(head, meta(len(head)+size+8), bmffBox("mdat", mdat))
}

// gridOf returns the content of a grid of one row.
func gridOf(columns, width, height int) string {
	return string(joined([]byte{0, 0, 0, byte(columns - 1)}, u16(width, height)))
}
