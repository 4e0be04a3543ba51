package imaging_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

const xmpName = "http://ns.adobe.com/xap/1.0/\x00"

// stripCase is an image and the expected rest of it.
type stripCase struct {
	name       string
	data, want []byte
}

func runStripCases(t *testing.T, ext string, cases []stripCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, got := strip(t, c.data, ext)
			if !bytes.Equal(got, c.want) {
				t.Errorf("got %d bytes %.300q\nwant %d bytes %.300q", len(got), got, len(c.want), c.want)
			}
			if want := !bytes.Equal(c.data, c.want); info.HasMetadata() != want {
				t.Errorf("HasMetadata is %t", !want)
			}
			if again, twice := strip(t, got, ext); again.HasMetadata() || !bytes.Equal(twice, got) {
				t.Error("stripping again changes it")
			}
		})
	}
}

func TestStripJPEG(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 30, 20)
	scanned := jpg[:len(jpg)-2]
	jfif := textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x00\x00")
	icc, adobe := iccSegment(1, 1, profile("RGB ", 200)), textSegment(0xEE, "Adobe\x00\x64\x00\x00\x00\x00\x01")
	six, tables := exifSegment(onlyTurned(6)), segment(0xDD, []byte{0, 0})
	scan := append(textSegment(0xDA, "\x01\x01\x00\x00\x3f\x00"), 0x55, 0xFF, 0, 0x66, 0xFF, 0xD0, 0x77)
	numbered := make([][]byte, 0, 16)
	for n := range byte(16) {
		numbered = append(numbered, textSegment(0xE0+n, "GPS"))
	}
	runStripCases(t, "jpg", []stripCase{
		{"nothing to do", jpg, jpg},
		{"JFIF, profile, Adobe", withSegments(jpg, jfif, icc, adobe), withSegments(jpg, jfif, icc, adobe)},
		{"the orientation alone", withSegments(jpg, jfif, six), withSegments(jpg, jfif, six)},
		{"more scans", beforeEnd(jpg, 2, scan, tables, scan), beforeEnd(jpg, 2, scan, tables, scan)},
		{"damaged profile", withSegments(jpg, icc, icc), withSegments(jpg, icc, icc)},

		{"upright EXIF", withSegments(jpg, exifSegment(turned(1))), jpg},
		{"orientation 1 alone", withSegments(jpg, exifSegment(onlyTurned(1))), jpg},
		{"EXIF of a turned image", withSegments(jpg, exifSegment(turned(6))), withSegments(jpg, six)},
		{"its position", withSegments(jpg, jfif, exifSegment(turned(6)), icc), withSegments(jpg, jfif, six, icc)},
		{"its position behind the profile", withSegments(jpg, icc, exifSegment(turned(6))), withSegments(jpg, icc, six)},
		{"EXIF twice", withSegments(jpg, exifSegment(turned(6)), exifSegment(turned(3))), withSegments(jpg, six)},
		{"the orientation twice", withSegments(jpg, six, six), withSegments(jpg, six)},
		{"orientation with a byte more", withSegments(jpg, exifSegment(append(onlyTurned(6), 0))), withSegments(jpg, six)},
		{
			"XMP, extended XMP",
			withSegments(jpg, textSegment(0xE1, xmpName+"<x/>"), textSegment(0xE1, "http://ns.adobe.com/xmp/extension/\x00gps")), jpg,
		},
		{"APP2 that is no profile", withSegments(jpg, textSegment(0xE2, "MPF\x00"), textSegment(0xE2, "ICC_PROFIL")), jpg},
		{"thumbnail of JFXX", withSegments(jpg, jfif, textSegment(0xE0, "JFXX\x00\x10abc")), withSegments(jpg, jfif)},
		{
			"thumbnail of JFIF",
			withSegments(jpg, textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x01\x01rgb"), exifSegment(turned(6))),
			withSegments(jpg, jfif, six),
		},
		{
			"a second JFIF, with a thumbnail", withSegments(jpg, jfif, textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x01\x01rgb")),
			withSegments(jpg, jfif),
		},
		{"unknown APP14", withSegments(jpg, textSegment(0xEE, "Nobody")), jpg},
		{"empty segments", withSegments(jpg, segment(0xE0, nil), segment(0xE1, nil), segment(0xE2, nil), segment(0xFE, nil)), jpg},
		{"stray bytes", joined(jpg[:2], []byte("stray"), tables, []byte("GPS\xff\xff"), jpg[2:]), withSegments(jpg, tables)},
		{"reserved markers", beforeEnd(jpg, 2, segment(0x02, nil), segment(0xF0, nil), segment(0xFD, nil)), jpg},
		{"behind the end", append(bytes.Clone(jpg), "TRAILER"...), jpg},
		{"an image behind the end", append(bytes.Clone(jpg), jpg...), jpg},
		{
			"between scans", joined(scanned, exifSegment(turned(6)), scan, textSegment(0xFE, "GPS"), tables, scan, icc, jpg[len(scanned):]),
			joined(scanned, scan, tables, scan, jpg[len(scanned):]),
		},
		{"stray bytes between scans", joined(scanned, tables, []byte("GPS"), scan, jpg[len(scanned):]), beforeEnd(jpg, 2, tables, scan)},
		{"segments of all applications", withSegments(jpg, numbered...), jpg},
	})
}

func TestStripPNG(t *testing.T) {
	t.Parallel()
	pic := drawPNG(t, 30, 20)
	six, icc := chunk("eXIf", onlyTurned(6)), profileChunk(profile("RGB ", 200))
	wrong := chunk("gAMA", make([]byte, 4))
	wrong[len(wrong)-1] ^= 1
	var all [][]byte
	for _, kind := range []string{"cHRM", "sRGB", "sBIT", "cICP", "mDCV", "cLLI", "bKGD", "hIST", "tRNS", "pHYs", "sPLT"} {
		all = append(all, chunk(kind, []byte{1}))
	}
	anim := [][]byte{chunk("acTL", make([]byte, 8)), frameChunk(30, 20)}
	late := [][]byte{frameChunk(30, 20), chunk("fdAT", []byte{0, 0, 0, 2, 1})}
	dropped := []string{"tEXt", "zTXt", "iTXt", "tIME", "prVt", "vpAg", "caBX", "dSIG", "oFFs", "gIFx"}
	gone := make([]stripCase, 0, 2*len(dropped)+1)
	gone = append(gone, stripCase{"more than a gamma", withChunks(pic, chunk("gAMA", []byte("0000GPS"))), pic})
	for _, kind := range dropped {
		gone = append(gone,
			stripCase{kind, withChunks(pic, chunk(kind, []byte("GPS"))), pic},
			stripCase{kind + " at the end", beforeEnd(pic, 12, chunk(kind, nil), chunk(kind, []byte("GPS"))), pic})
	}
	runStripCases(t, "png", gone)
	runStripCases(t, "png", []stripCase{
		{"nothing to do", pic, pic},
		{"chunks that change the rendering", withChunks(pic, append(all, icc, wrong)...), withChunks(pic, append(all, icc, wrong)...)},
		{"animation", beforeEnd(withChunks(pic, anim...), 12, late...), beforeEnd(withChunks(pic, anim...), 12, late...)},
		{"the orientation alone", withChunks(pic, six, icc), withChunks(pic, six, icc)},
		{"EXIF of a turned image", withChunks(pic, chunk("eXIf", turned(6)), icc), withChunks(pic, six, icc)},
		{"upright EXIF", withChunks(pic, chunk("eXIf", turned(1))), pic},
		{"EXIF twice", withChunks(pic, chunk("eXIf", turned(6)), chunk("eXIf", turned(3))), withChunks(pic, six)},
		{"EXIF behind the pixels", beforeEnd(pic, 12, chunk("eXIf", turned(6))), pic},
		{"the orientation behind the pixels", beforeEnd(pic, 12, six), pic},
		{"behind the end", append(bytes.Clone(pic), "TRAILER"...), pic},
	})
}

func TestStripGIF(t *testing.T) {
	t.Parallel()
	anim := drawGIF(t, 30, 20, 3) // begins with NETSCAPE2.0
	screen := 13 + 3<<(1+anim[10]&7)*int(anim[10]>>7)
	with := func(blocks ...string) []byte {
		b := bytes.Clone(anim[:screen])
		for _, block := range blocks {
			b = append(b, block...)
		}
		return append(b, anim[screen:]...)
	}
	const (
		loop  = "!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"
		old   = "!\xff\x0bANIMEXTS1.0\x03\x01\x00\x00\x00"
		icc   = "!\xff\x0bICCRGBG1012\x03abc\x00"
		delay = "!\xf9\x04\x00\x05\x00\x00\x00"
		text  = "!\x01\x0c\x00\x00\x00\x00\x1e\x00\x14\x00\x08\x08\x01\x00\x03GPS\x00"
		xmp   = "!\xff\x0bXMP DataXMP<x:xmpmeta/>\x01\xff\xfe\x00"
	)
	runStripCases(t, "gif", []stripCase{
		{"nothing to do", anim, anim},
		{"still", manyFrames(1, 3, 3), manyFrames(1, 3, 3)},
		{"loops and profile", with(loop, old, icc), with(loop, old, icc)},
		{"comments", with("!\xfe\x00", "!\xfe\x03GPS\x02ab\x00"), anim},
		{"comment before the trailer", joined(anim[:len(anim)-1], []byte("!\xfe\x03GPS\x00;")), anim},
		{"XMP", with(loop, "!\xff\x0bXMP DataXMP\x03gps\x00"), with(loop)},
		{"other applications", with("!\xff\x0bMGK8BIM0000\x03gps\x00", "!\xff\x03abc\x00", "!\xff\x0bNETSCAPE2.1\x00"), anim},
		{"unknown extension", with("!\x42\x03GPS\x00"), anim},
		{"text, but not its control", with(delay, text), with(delay)},
		{"behind the trailer", append(bytes.Clone(anim), "TRAILER"...), anim},
		{"short application before the trailer", joined(anim[:len(anim)-1], []byte("!\xff\x01a\x00;")), anim},
		{"loop with more in it", with("!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x03gps\x00"), anim},
	})
	if _, got := strip(t, with(xmp[:14]+"\x03<x>"+"\x00"), "gif"); !bytes.Equal(got, anim) {
		t.Error("XMP is left")
	}
}

func TestStripSVG(t *testing.T) {
	t.Parallel()
	data := []byte(svg("<metadata>who</metadata>") + "\n\n")
	runStripCases(t, "svg", []stripCase{{"stays", data, data}})
}

func TestTruncatedMetadataIsRefused(t *testing.T) {
	t.Parallel()
	icc := profile("RGB ", 150)
	jpg := withSegments(drawJPEG(t, 8, 8), textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x01\x01rgb"),
		exifSegment(turned(6)), iccSegment(1, 1, icc), textSegment(0xEE, "Adobe"))
	pic := withChunks(drawPNG(t, 8, 8), profileChunk(icc), chunk("eXIf", turned(6)), chunk("acTL", make([]byte, 8)), frameChunk(8, 8))
	anim := joined(manyFrames(1, 3, 3)[:13], []byte("!\xfe\x01a\x00!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"), manyFrames(1, 3, 3)[13:])
	for ext, data := range map[string][]byte{"jpg": jpg, "png": pic, "gif": anim} {
		strip(t, data, ext)
		for n := range data {
			if _, err := check(data[:n], ext, imaging.Options{}); verdictOf(err) != refused {
				t.Errorf("%s: the first %d of %d bytes: %v", ext, n, len(data), err)
			}
		}
	}
}

// manyParts returns an image of which many parts are stripped and many kept, some of them larger
// than a buffer.
func manyParts(t testing.TB) (data, want []byte) {
	jpg := drawJPEG(t, 300, 200)
	tables := segment(0xDD, []byte{0, 0})
	var in, out [][]byte
	for i := range 500 {
		in = append(in, tables, segment(0xFE, make([]byte, i*i%60000)))
		out = append(out, tables)
	}
	return append(withSegments(jpg, append(in, exifSegment(turned(3)))...), "tail"...),
		withSegments(jpg, append(out, exifSegment(onlyTurned(3)))...)
}

func TestStrippedIsAGoodReader(t *testing.T) {
	t.Parallel()
	data, want := manyParts(t)
	info, _ := strip(t, data, "jpg")
	imagingtest.Is(t, iotest.TestReader(info.Stripped(bytes.NewReader(data)), want), nil)
	r := bytes.NewReader(data)
	for name, in := range map[string]io.Reader{
		"one byte": iotest.OneByteReader(r), "half": iotest.HalfReader(r),
	} {
		got, err := io.ReadAll(iotest.OneByteReader(info.Stripped(slow{in, r})))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(want), err)
		}
	}
	if n, err := info.Stripped(bytes.NewReader(data)).Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	if b, err := io.ReadAll(imaging.Info{}.Stripped(bytes.NewReader(data))); len(b) != 0 || err != nil {
		t.Errorf("of no image: %d bytes, %v", len(b), err)
	}
}

func TestStrippedReportsFailures(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	data, _ := manyParts(t)
	info, _ := strip(t, data, "jpg")
	for _, n := range []int{0, 2, 5, 700, len(data) / 2} {
		r := info.Stripped(brokenReader{Reader: io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(cause))})
		_, err := io.ReadAll(r)
		imagingtest.Is(t, err, cause, "failing after", n, "bytes")
		_, err = r.Read(make([]byte, 9))
		imagingtest.Is(t, err, cause, "reading on")
		_, err = io.ReadAll(info.Stripped(bytes.NewReader(data[:n])))
		imagingtest.Is(t, err, io.ErrUnexpectedEOF, "cut to", n, "bytes")
	}
	_, err := io.ReadAll(info.Stripped(brokenReader{bytes.NewReader(data), cause}))
	imagingtest.Is(t, err, cause, "failing to seek")
}

func TestOrientationIsWrittenBigEndian(t *testing.T) {
	t.Parallel()
	le := exif(binary.LittleEndian, tiffEntry{0x0112, 3, 1, [4]byte{5}})
	_, got := strip(t, withSegments(drawJPEG(t, 8, 8), exifSegment(le)), "jpg")
	if !bytes.HasPrefix(got[2:], exifSegment(onlyTurned(5))) {
		t.Errorf("got %q", got[:40])
	}
}
