package imaging_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
	"image/png"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// measured fails the test if f allocates too much, or if its error is not documented. Its input is
// in memory, so every error must be a refusal.
func measured(t *testing.T, f func() error) {
	t.Helper()
	var err error
	memory := allocated(func() { err = f() })
	if verdictOf(err) == failed {
		t.Errorf("undocumented error %v", err)
	}
	if err != nil && (err.Error() == "" || len(err.Error()) > 300 || !utf8.ValidString(err.Error())) {
		t.Errorf("message %q", err)
	}
	if memory > 64<<20 {
		t.Errorf("allocated %d bytes", memory)
	}
}

func FuzzCheckImage(f *testing.F) {
	exts := []string{"jpg", "png", "gif", "webp", "avif", "heic"}
	f.Add(flatAnimation(3, 16, 16), uint8(3))
	f.Add(drawJPEG(f, 16, 16), uint8(0))
	f.Add(drawPNG(f, 16, 16), uint8(1))
	f.Add(withChunks(drawPNG(f, 4, 4), chunk("acTL", make([]byte, 8)), frameChunk(4, 4)), uint8(1))
	f.Add(drawGIF(f, 16, 16, 2), uint8(2))
	f.Add(withChunks(drawPNG(f, 4, 4), p3Chroma, gama(45_455)), uint8(1))
	f.Add(withChunks(drawPNG(f, 4, 4), profileChunk(profile("RGB ", 200)), chunk("cICP", []byte{12, 13, 0, 1})), uint8(1))
	f.Add(withSegments(drawJPEG(f, 8, 8), iccSegment(1, 1, profile("RGB ", 200))), uint8(0))
	jpg, _ := drawGrey(f, 8, 8)
	f.Add(withSegments(jpg, iccSegment(1, 1, profile("GRAY", 144))), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		measured(t, func() error {
			info, err := check(data, exts[int(kind)%len(exts)], imaging.Options{})
			pixels := int64(info.Width) * int64(info.Height)
			if err == nil && (pixels <= 0 || pixels > 50_000_000 || info.Frames < 1) {
				t.Errorf("passed as %+v", info)
			}
			if len(info.Profile) > 64<<10 || info.Profile != nil && info.ColorLoss != "" {
				t.Errorf("a profile of %d bytes, and %q", len(info.Profile), info.ColorLoss)
			}
			if _, err := info.ToSRGB(bytes.NewReader(data)); err != nil {
				t.Errorf("the colours: %v", err)
			}
			return err
		})
	})
}

// FuzzGIFInStep: the walk counts exactly the frames that the decoder decodes. They have the same
// pixels as those of the standard library, which decodes fewer images, and assumes sizes of some
// extensions.
func FuzzGIFInStep(f *testing.F) {
	f.Add(drawGIF(f, 16, 16, 2))
	f.Add(hiddenFrame("\x01\x18"))
	f.Add(hiddenFrame("\x01\x0c"))
	f.Add(hiddenFrame("\xff\x00"))
	f.Add(joined(drawGIF(f, 8, 8, 1)[:len(drawGIF(f, 8, 8, 1))-1], []byte{0, 0}))
	f.Add(joined(drawGIF(f, 8, 8, 3)[:13], []byte("!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"), drawGIF(f, 8, 8, 3)[13:]))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := check(data, "gif", imaging.Options{MaxPixels: 10_000, MaxFramePixels: 100_000})
		if err != nil {
			return
		}
		measured(t, func() error {
			g, err := imaging.DecodeGIF(bytes.NewReader(data), info)
			if err != nil {
				return err
			}
			var pixels int64
			for _, frame := range g.Image {
				pixels += int64(frame.Rect.Dx() * frame.Rect.Dy())
			}
			assumed := bytes.Contains(data, []byte("!\xff\x00")) || bytes.Contains(data, []byte("!\x01"))
			if want, err := gif.DecodeAll(bytes.NewReader(data)); err == nil && !assumed && !sameFrames(g, want) {
				t.Error("the pixels differ")
			}
			if len(g.Image) != info.Frames || info.Frames > 1 && pixels != info.FramePixels {
				t.Errorf("%d frames of %d pixels, the walk saw %d of %d", len(g.Image), pixels, info.Frames, info.FramePixels)
			}
			return nil
		})
	})
}

// FuzzDecode: what a decoder sees of an image has the pixels that the standard library decodes from
// the whole file. Tables that JPEGs define again are an exception.
func FuzzDecode(f *testing.F) {
	parts := []part{{1, 0x11, 0}, {1, 0x11, 0}, {1, 0x11, 0}, {4, 0x11, 0}}
	f.Add(drawJPEG(f, 16, 16), false)
	f.Add(flat(parts[:3]...), false)
	f.Add(flat(parts...), false)
	f.Add(beforeEnd(flat(parts...), 2, segment(0xDC, []byte{0, 8})), false)
	f.Add(drawPNG(f, 8, 8), true)
	f.Add(withChunks(drawPNG(f, 8, 8), chunk("tRNS", make([]byte, 6)), chunk("PLTE", make([]byte, 9))), true)
	f.Add(withChunks(resizedPNG(drawPNG(f, 8, 8), 9, 8), gama(45_455)), true)
	f.Fuzz(func(t *testing.T, data []byte, isPNG bool) {
		ext := "jpg"
		if isPNG {
			ext = "png"
		}
		info, err := check(data, ext, imaging.Options{MaxPixels: 10_000})
		if err != nil {
			return
		}
		measured(t, func() error {
			got, err := imaging.Decode(bytes.NewReader(data), info)
			if want, known := png.Decode(bytes.NewReader(data)); isPNG && known == nil && !samePixels(got, want) {
				t.Errorf("the pixels differ: %v", err)
			}
			if err == nil && got.Bounds().Size() != image.Pt(info.Width, info.Height) {
				t.Errorf("the image is of %v", got.Bounds())
			}
			return err
		})
	})
}

func FuzzCheckFile(f *testing.F) {
	for name, content := range samples(f) {
		f.Add([]byte(content), name, mediaTypes[name])
	}
	f.Fuzz(func(t *testing.T, data []byte, ext, contentType string) {
		measured(t, func() error { return imaging.CheckFile(bytes.NewReader(data), ext, contentType) })
	})
}

// assembled builds an image from a recipe. Each block of the recipe is a kind, a position, a
// length and content. Mutating the bytes of a whole image rarely makes a valid one.
func assembled(recipe []byte, whole map[string][]byte, ext string) []byte {
	var front, back []byte
	for len(recipe) >= 3 {
		kind, place, n := recipe[0], recipe[1], min(int(recipe[2]), len(recipe)-3)
		block := fuzzBlock(ext, kind, recipe[3:3+n])
		recipe = recipe[3+n:]
		if place&1 == 0 {
			front = append(front, block...)
		} else {
			back = append(back, block...)
		}
	}
	data := whole[ext]
	start, end := 2, 2
	switch ext {
	case "png":
		start, end = 33, 12
	case "gif":
		start, end = 13, 1
	}
	return joined(data[:start], front, data[start:len(data)-end], back, data[len(data)-end:], recipe)
}

func fuzzBlock(ext string, kind byte, content []byte) []byte {
	switch ext {
	case "jpg":
		heads := []string{"", "JFIF\x00", "Exif\x00\x00MM\x00*\x00\x00\x00\x08", "ICC_PROFILE\x00\x01", "Adobe"}
		head := heads[int(kind>>4)%len(heads)]
		marker := []byte{0xE0, 0xE1, 0xE2, 0xEE, 0xFE, 0xDD, 0xDA, 0xC4, 0xE5, 0xDC, 0xC2, 0xF0, 0x01, 0xE0, 0xE1, 0xE2}[kind&15]
		if kind == 255 {
			return content // stray
		}
		return textSegment(marker, head+string(content))
	case "png":
		kinds := []string{"tEXt", "eXIf", "iCCP", "gAMA", "IDAT", "PLTE", "acTL", "fcTL", "fdAT", "prVt", "PRVT"}
		if kind&0x80 != 0 {
			content = exif(binary.BigEndian, tiffEntry{0x0112, 3, 1, [4]byte{0, kind & 15}})
		}
		return chunk(kinds[int(kind)%len(kinds)], content)
	}
	labels := []byte{0xFE, 0xF9, 0x01, 0xFF, 0x42}
	if kind&0x80 != 0 {
		content = []byte("NETSCAPE2.0")
	}
	return joined([]byte{'!', labels[int(kind)%len(labels)], byte(len(content))}, content, make([]byte, min(1, len(content))))
}

// FuzzStrip: a stripped image is valid, has the same Info, and has no further metadata.
func FuzzStrip(f *testing.F) {
	exts := []string{"jpg", "png", "gif"}
	rgb := profile("RGB ", 200)
	jpg, pic := drawJPEG(f, 16, 16), drawPNG(f, 16, 16)
	jfif := textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x01\x01rgb")
	f.Add(append(withSegments(jpg, jfif, exifSegment(turned(6)), iccSegment(1, 1, rgb), textSegment(0xFE, "x")), "tail"...), uint8(0))
	f.Add(beforeEnd(jpg, 2, exifSegment(turned(6)), textSegment(0xEE, "Adobe\x00\x64\x00\x00\x00\x00\x01")), uint8(0))
	f.Add(headerJPEG(0xC2, 0x22, 0x11, 0x11), uint8(0))
	f.Add(withChunks(pic, chunk("eXIf", turned(6)), profileChunk(rgb), chunk("tEXt", []byte("x"))), uint8(1))
	f.Add(beforeEnd(withChunks(pic, chunk("acTL", make([]byte, 8)), frameChunk(4, 4)), 12, chunk("eXIf", turned(3))), uint8(1))
	f.Add(joined(manyFrames(2, 4, 4)[:13], []byte("!\xfe\x01a\x00!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"), manyFrames(2, 4, 4)[13:]), uint8(2))
	whole := map[string][]byte{"jpg": jpg, "png": pic, "gif": manyFrames(2, 4, 4)}
	for kind := range uint8(3) {
		f.Add([]byte("\x21\x00\x12\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00\x81\x01\x00\x04\x00\x03abctail"), 3+kind)
	}
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		ext := exts[int(kind)%len(exts)]
		made := kind >= 3
		if made {
			data = assembled(data, whole, ext)
		}
		if _, err := check(data, ext, imaging.Options{}); err != nil {
			return
		}
		info, _, once := stripsWhole(t, data, ext)
		if o := info.Orientation; o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
		if before, err := decode(data, ext); err == nil && !made {
			if after, err := decode(once, ext); err != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("the pixels differ: %v", err)
			}
		}
	})
}

func FuzzOrientation(f *testing.F) {
	jpg, pic := drawJPEG(f, 8, 8), drawPNG(f, 8, 8)
	for o := range byte(10) {
		f.Add(turned(o))
	}
	f.Add(exif(binary.LittleEndian, tiffEntry{0x0112, 3, 1, [4]byte{6}}))
	f.Fuzz(func(t *testing.T, tiff []byte) {
		if len(tiff) > 65500 {
			return
		}
		o := orientationOf(t, jpg, pic, tiff)
		if o < 1 || o > 8 || o != imaging.Upright && !bytes.Contains(tiff, []byte{byte(o)}) {
			t.Errorf("orientation %d", o)
		}
		_, stripped := strip(t, withSegments(jpg, exifSegment(tiff)), "jpg")
		if again, _ := strip(t, stripped, "jpg"); again.Orientation != o {
			t.Errorf("was %d, is %d", o, again.Orientation)
		}
	})
}

// canvasesOf returns the pixels of all frames.
func canvasesOf(data []byte, info imaging.Info) (pixels [][]byte, err error) {
	for canvas, err := range imaging.WebPCanvases(bytes.NewReader(data), info) {
		if err != nil {
			return pixels, err
		}
		pixels = append(pixels, bytes.Clone(canvas.Image.Pix))
	}
	return pixels, nil
}

// FuzzWebP: a checked image decodes within its limits or is refused. Without metadata it is valid
// and shows the same.
func FuzzWebP(f *testing.F) {
	lossy, alpha := drawWebP(f, opaque(16, 16), webp.Options{}), drawWebP(f, shaded(16, 16), webp.Options{})
	exact := drawWebP(f, shaded(16, 16), webp.Options{Lossless: true})
	all := image.Rect(0, 0, 16, 16)
	for _, seed := range [][]byte{
		lossy, alpha, exact, flatAnimation(2, 4, 4), riffFile(lossyHead(30, 20)),
		riffFile(extended(flagEXIF|flagXMP, 16, 16), bitstream(lossy), webpChunk("EXIF", turned(6)), webpChunk("XMP ", nil)),
		riffFile(extended(flagProfile, 16, 16), webpChunk("ICCP", profile("RGB ", 200)), bitstream(exact), []byte("ab")),
		riffFile(extended(flagAnimation, 16, 16), animHead(2), frameWebP(all, 9, 1, bitstream(alpha)),
			frameWebP(all, 9, 2, bitstream(exact), webpChunk("what", nil)), webpChunk("EXIF", onlyTurned(3))),
	} {
		f.Add(seed)
	}
	opts := imaging.Options{Strip: imaging.StripOn, MaxPixels: 10_000, MaxFramePixels: 100_000}
	f.Fuzz(func(t *testing.T, data []byte) {
		var info imaging.Info
		measured(t, func() (err error) {
			info, err = check(data, "webp", opts)
			return err
		})
		if info.Format == "" {
			return
		}
		_, again, once := stripsWhole(t, data, "webp")
		if info.FramePixels > 20_000 { // the rest takes long
			return
		}
		before, cause := canvasesOf(data, info)
		if verdictOf(cause) == failed || cause == nil && len(before) != info.Frames {
			t.Errorf("%d frames of %d: %v", len(before), info.Frames, cause)
		}
		after, again2 := canvasesOf(once, again)
		if !reflect.DeepEqual(before, after) || (cause == nil) != (again2 == nil) {
			t.Errorf("the pixels differ: %v, %v", cause, again2)
		}
		img, err := imaging.Decode(bytes.NewReader(data), info)
		if planes, ok := img.(*image.YCbCr); ok && (info.Alpha || info.Lossless || planes.SubsampleRatio != image.YCbCrSubsampleRatio420) {
			t.Errorf("a %T of %+v", img, described(info))
		}
		if err == nil && (img.Bounds() != image.Rect(0, 0, info.Width, info.Height)) || err == nil != (len(before) > 0) {
			t.Errorf("decoded to %v, %v", img, err)
		}
	})
}

// FuzzBMFF: a checked AVIF or HEIC is within its limits. Without metadata it is valid, has the same
// length, and differs only in zeros and the names of boxes.
func FuzzBMFF(f *testing.F) {
	for _, name := range []string{"turned.avif", "grid.avif", "sequence.avif", "photo.heic", "thumbnail.heic"} {
		f.Add(fixture(f, name), name[len(name)-4:] == "heic")
	}
	pixels := bmffItem{"av01", "pixels", 30, 20, nil, false}
	f.Add(heif("avif", []bmffItem{pixels, {"Exif", "GPS", 0, 0, nil, true}}, bmffBox("uuid", []byte("x"))), false)
	f.Add(heif("mif1", []bmffItem{{"grid", gridOf(2, 60, 20), 60, 20, []int{2, 2}, true}, pixels}), false)
	for _, it := range locatedItems(f) {
		f.Add(it.data, false)
	}
	f.Add(largeData(heif("avif", []bmffItem{pixels})), false)
	f.Add(append(endless(heif("avif", []bmffItem{pixels})), bmffBox("moov", bmffBox("trak", bmffBox("udta")))...), false)
	f.Fuzz(func(t *testing.T, data []byte, heic bool) {
		ext := "avif"
		if heic {
			ext = "heic"
		}
		var info imaging.Info
		measured(t, func() (err error) {
			info, err = check(data, ext, imaging.Options{Strip: imaging.StripOn})
			return err
		})
		if info.Format == "" {
			return
		}
		if info.FramePixels <= 0 || info.FramePixels > 50_000_000 || info.End > int64(len(data)) {
			t.Errorf("passed as %+v", info)
		}
		_, _, once := stripsWhole(t, data, ext)
		if int64(len(once)) != info.End {
			t.Fatalf("%d of %d bytes", len(once), info.End)
		}
		checkStripped(t, data, ext)
		if bytes.Contains(data, []byte("DRGainMap")) || bytes.Contains(data, []byte("hdr-gain-map")) {
			return // its XMP is rewritten
		}
		for i, b := range once {
			if b != data[i] && b != 0 && !bytes.ContainsRune([]byte("free"), rune(b)) {
				t.Fatalf("at %d: %#x became %#x", i, data[i], b)
			}
		}
	})
}
