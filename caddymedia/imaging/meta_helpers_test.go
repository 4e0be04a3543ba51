package imaging_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

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
	if err != nil {
		t.Fatal(err)
	}
	stripped, err := io.ReadAll(info.Stripped(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := jpeg.Encode(&a, small, nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&b, grey); err != nil {
		t.Fatal(err)
	}
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
	return joined([]byte{0xFF, 0xD8}, textSegment(sof, frame), textSegment(0xDA, scan+"\x00\x3f\x00"), []byte{0x55, 0xFF, 0xD9})
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
