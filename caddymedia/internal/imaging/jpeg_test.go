package imaging_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"regexp"
	"strconv"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/imagingtest"
	"github.com/caddymedia/media/internal/test"
)

// gainMapOf returns the second and last image in the index of a JPEG. It fails the test if the
// index does not fit the file.
func gainMapOf(t testing.TB, data []byte) []byte {
	t.Helper()
	at := bytes.Index(data, []byte("MPF\x00"))
	if at < 0 {
		t.Fatal("there is no index")
	}
	at += 4
	var o binary.ByteOrder = binary.BigEndian
	if data[at] == 'I' {
		o = binary.LittleEndian
	}
	number := func(offset int) int { return int(o.Uint32(data[at+offset:])) }
	if images, size := number(30), number(38); images != 2 || size != 32 {
		t.Fatalf("the index has %d images, %d bytes", images, size)
	}
	first, size, offset := number(54), number(70), number(74)
	if at+offset != first || first+size != len(data) {
		t.Fatalf("images of %d and %d bytes at %d in a file of %d", first, size, at+offset, len(data))
	}
	for _, image := range [][]byte{data[:first], data[first:]} {
		if _, err := jpeg.Decode(bytes.NewReader(image)); err != nil || !bytes.HasSuffix(image, []byte("\xff\xd9")) {
			t.Fatalf("an image ends with %q: %v", image[len(image)-2:], err)
		}
	}
	return data[first:]
}

var gainMapLength = regexp.MustCompile(`Item:Semantic="GainMap" Item:Mime="image/jpeg" Item:Length="(\d+)"`)

// TestGainMap: the gain map of an HDR photo remains, and what a decoder needs to find it.
func TestGainMap(t *testing.T) {
	t.Parallel()
	for i := range 64 {
		p := imagingtest.Photo{
			Image: drawJPEG(t, 32, 16), GainMap: drawJPEG(t, 8, 4), Order: binary.BigEndian,
			XMP: i&1 != 0, ISO: i&2 != 0, Plain: i&4 != 0, Credentials: i&8 != 0,
		}
		if i&16 != 0 {
			p.Order = binary.LittleEndian
		}
		mode := imaging.StripOn
		if i&32 != 0 {
			mode = imaging.StripLocation
		}
		t.Run(fmt.Sprintf("%s xmp %t, iso %t, plain %t, credentials %t, %s", mode, p.XMP, p.ISO, p.Plain, p.Credentials, p.Order), func(t *testing.T) {
			t.Parallel()
			data := p.JPEG()
			info, got := stripBy(t, data, "jpg", mode)
			header, err := imaging.ReadHeader(bytes.NewReader(got), int64(len(got)), "jpg", imaging.Options{})
			if hdr := p.XMP || p.ISO; err != nil || info.HDR != hdr || header.HDR != hdr {
				t.Errorf("HDR is %t, then %t: %v", info.HDR, header.HDR, err)
			}
			checkStripped(t, data, "jpg")
			if !p.XMP && !p.ISO {
				if bytes.Contains(got, []byte("MPF")) || bytes.Count(got, []byte("\xff\xd8")) != 1 {
					t.Error("an image that is no gain map is left")
				}
				return
			}
			gainMap := gainMapOf(t, got)
			if p.XMP && !bytes.Contains(gainMap, []byte(`hdrgm:GainMapMax="2.5"`)) || p.ISO && !bytes.Contains(gainMap, []byte(imagingtest.ISO)) {
				t.Error("the gain map is not described")
			}
			if n := bytes.Count(got, []byte(imagingtest.ISO)); p.ISO && n != 2 {
				t.Errorf("ISO 21496-1 is there %d times", n)
			}
			if bytes.Contains(gainMap, []byte("Exif")) {
				t.Error("the gain map has EXIF")
			}
			if length := gainMapLength.FindSubmatch(got); p.XMP && (length == nil || string(length[1]) != strconv.Itoa(len(gainMap))) {
				t.Errorf("length %s of %d", length, len(gainMap))
			}
			whole := p.Plain && (mode == imaging.StripLocation || !p.XMP && !p.Credentials)
			test.Equal(t, whole, bytes.Equal(got, data), "it is not as it was sent")
			for _, text := range []string{imagingtest.Place, "MotionPhoto"} {
				if bytes.Contains(got, []byte(text)) && !whole {
					t.Errorf("%q is left", text)
				}
			}
			if owned := bytes.Contains(got, []byte(imagingtest.Owner)); owned != (mode == imaging.StripLocation && (p.XMP || !p.Plain)) {
				t.Errorf("the owner is left: %t", owned)
			}
		})
	}
}

// TestNoGainMap: an index that names no gain map is removed with the images behind the first.
func TestNoGainMap(t *testing.T) {
	t.Parallel()
	p := imagingtest.Photo{Image: drawJPEG(t, 32, 16), GainMap: drawJPEG(t, 8, 4), Order: binary.BigEndian, XMP: true, ISO: true, Plain: true}
	data := p.JPEG()
	end := len(data) - len(gainMapOf(t, data))
	index := bytes.Index(data, []byte("MPF\x00"))
	at := func(offset int, b ...byte) []byte {
		damaged := bytes.Clone(data)
		copy(damaged[index+4+offset:], b)
		return damaged
	}
	for name, damaged := range map[string][]byte{
		"no image":                 at(38, 0, 0, 0, 16),
		"an image behind the end":  at(74, 1, 0, 0, 0),
		"an image inside another":  at(74, 0, 0, 0, 0),
		"one that is no JPEG":      append(bytes.Clone(data[:end]), bytes.Repeat([]byte("x"), 1000)...),
		"one that ends early":      data[:len(data)-10],
		"one without gains":        append(bytes.Clone(data[:end]), drawJPEG(t, 8, 4)...),
		"entries behind the end":   at(42, 1),
		"no directory":             at(4, 1),
		"another order":            at(0, 'X'),
		"entries of unknown types": at(36, 1, 1),
	} {
		for _, mode := range []imaging.StripMode{imaging.StripOn, imaging.StripLocation} {
			if _, got := stripBy(t, damaged, "jpg", mode); bytes.Contains(got, []byte("MPF")) || bytes.Contains(got, []byte("hdrgm:Version")) || bytes.Count(got, []byte("\xff\xd8")) != 1 {
				t.Errorf("%s: got %q", name, got)
			}
			checkStripped(t, damaged, "jpg")
		}
	}
}

// FuzzGainMap: a damaged HDR photo that is stripped shows the same, and is not changed by stripping
// again.
func FuzzGainMap(f *testing.F) {
	var all [8][]byte
	for i := range all {
		p := imagingtest.Photo{Image: drawJPEG(f, 16, 8), GainMap: drawJPEG(f, 8, 4), Order: binary.BigEndian, XMP: i&1 == 0, ISO: i&3 != 0, Plain: i&4 != 0, Credentials: true}
		if i&2 != 0 {
			p.Order = binary.LittleEndian
		}
		all[i] = p.JPEG()
		f.Add(uint8(i), []byte{0, 200, 1, 1, 0, 255})
	}
	f.Fuzz(func(t *testing.T, kind uint8, recipe []byte) {
		data := bytes.Clone(all[int(kind)%len(all)])
		for ; len(recipe) >= 3; recipe = recipe[3:] {
			data[(int(recipe[0])<<8|int(recipe[1]))%len(data)] = recipe[2]
		}
		checkStripped(t, data, "jpg")
	})
}

func TestReadHeader(t *testing.T) {
	t.Parallel()
	wide := drawJPEG(t, 50, 20)
	for name, c := range map[string]struct {
		data []byte
		ext  string
		want image.Point
	}{
		"JPEG":             {wide, "jpg", image.Pt(50, 20)},
		"turned JPEG":      {withSegments(wide, exifSegment(turned(6))), "jpeg", image.Pt(20, 50)},
		"header of a JPEG": {wide[:len(wide)*3/4], "jpg", image.Pt(50, 20)},
		"PNG":              {drawPNG(t, 50, 20), "png", image.Pt(50, 20)},
		"GIF":              {drawGIF(t, 50, 20, 2), "gif", image.Pt(50, 20)},
		"another format":   {wide, "png", image.Point{}},
		"PNG as JPEG":      {drawPNG(t, 50, 20), "jpg", image.Point{}},
		"start of a JPEG":  {wide[:10], "jpg", image.Point{}},
		"empty":            {nil, "jpg", image.Point{}},
		"text":             {[]byte("text"), "txt", image.Point{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, err := imaging.ReadHeader(bytes.NewReader(c.data), int64(len(c.data)), c.ext, imaging.Options{})
			got := info.UprightSize()
			if got != c.want || (err == nil) != (c.want != image.Point{}) {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(drawJPEG(f, 5, 2), uint8(0))
	f.Add(withSegments(drawJPEG(f, 5, 2), exifSegment(turned(6))), uint8(0))
	f.Add(drawPNG(f, 5, 2), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		ext := []string{"jpg", "png", "gif", "webp"}[which%4]
		info, err := imaging.ReadHeader(bytes.NewReader(data), int64(len(data)), ext, imaging.Options{})
		if err == nil && (info.Width <= 0 || info.Height <= 0) {
			t.Errorf("the sides are %v", info.UprightSize())
		}
	})
}
