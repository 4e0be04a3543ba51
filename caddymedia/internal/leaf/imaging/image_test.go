package imaging_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

func TestCheckImageDescribesWhatPasses(t *testing.T) {
	t.Parallel()
	jpg, pic, anim := drawJPEG(t, 30, 20), drawPNG(t, 30, 20), drawGIF(t, 30, 20, 3)
	grey, deep := drawGrey(t, 30, 20)
	apng := withChunks(pic, chunk("acTL", make([]byte, 8)), frameChunk(30, 20), frameChunk(10, 10))
	for _, c := range []struct {
		name, ext string
		data      []byte
		want      imaging.Info
	}{
		{"jpg", "jpg", jpg, imaging.Info{Format: imaging.JPEG, Components: 3, Samples: 3}},
		{"jpeg", "jpeg", jpg, imaging.Info{Format: imaging.JPEG, Components: 3, Samples: 3}},
		{"jpeg of grey", "jpg", grey, imaging.Info{Format: imaging.JPEG, Components: 1, Samples: 2}},
		{"jpeg of CMYK", "jpg", headerJPEG(0xC0, 0x11, 0x11, 0x11, 0x11), imaging.Info{Format: imaging.JPEG, Components: 4, Samples: 8}},
		{"jpeg of full chroma", "jpg", headerJPEG(0xC0, 0x11, 0x11, 0x11), imaging.Info{Format: imaging.JPEG, Components: 3, Samples: 6}},
		{"jpeg of half chroma", "jpg", headerJPEG(0xC0, 0x21, 0x11, 0x11), imaging.Info{Format: imaging.JPEG, Components: 3, Samples: 4}},
		{
			"progressive jpeg", "jpg", headerJPEG(0xC2, 0x22, 0x11, 0x11),
			imaging.Info{Format: imaging.JPEG, Components: 3, Samples: 3, Progressive: true},
		},
		{"png", "png", pic, imaging.Info{Format: imaging.PNG}},
		{"deep png", "png", deep, imaging.Info{Format: imaging.PNG, Deep: true}},
		{"interlaced png", "png", interlaced(pic), imaging.Info{Format: imaging.PNG, Interlaced: true}},
		{"animated png", "png", apng, imaging.Info{Format: imaging.PNG, Frames: 2, Animated: true, FramePixels: 700}},
		{
			"animated png of no frames", "png", withChunks(pic, chunk("acTL", make([]byte, 8))),
			imaging.Info{Format: imaging.PNG, Animated: true},
		},
		{"gif", "gif", drawGIF(t, 30, 20, 1), imaging.Info{Format: imaging.GIF}},
		{"animated gif", "gif", anim, imaging.Info{Format: imaging.GIF, Frames: 3, Animated: true, FramePixels: 1800}},
		{"frame control without animation control", "png", withChunks(pic, frameChunk(1<<31-1, 1)), imaging.Info{Format: imaging.PNG}},
		{
			"jpeg with stray bytes between segments", "jpg", append([]byte{0xFF, 0xD8, 0, 1, 2, 0xFF, 0xFF}, jpg[3:]...),
			imaging.Info{Format: imaging.JPEG, Components: 3, Samples: 3},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Width, c.want.Height, c.want.Frames = 30, 20, max(1, c.want.Frames)
			c.want.Orientation, c.want.End = imaging.Upright, int64(len(c.data))
			if c.want.FramePixels == 0 {
				c.want.FramePixels = 600
			}
			got, err := check(append(c.data, "tail"...), c.ext, imaging.Options{})
			if err != nil || !reflect.DeepEqual(described(got), c.want) {
				t.Errorf("got %+v, %v; want %+v", described(got), err, c.want)
			}
		})
	}
}

func TestCheckImageDescribesSVG(t *testing.T) {
	t.Parallel()
	for _, data := range []string{svg(""), "<!-- x -->" + svg("")} {
		got, err := check([]byte(data), "svg", imaging.Options{})
		want := imaging.Info{Format: imaging.SVG, Frames: 1, Orientation: imaging.Upright, End: int64(len(data))}
		if err != nil || !reflect.DeepEqual(described(got), want) {
			t.Errorf("got %+v, %v; want %+v", described(got), err, want)
		}
	}
}

func TestCheckImageNamesTheContent(t *testing.T) {
	t.Parallel()
	content := map[string][]byte{
		"JPEG": drawJPEG(t, 8, 8), "PNG": drawPNG(t, 8, 8), "GIF": drawGIF(t, 8, 8, 1), "SVG": []byte(svg("")),
		"HTML":              []byte("<!DOCTYPE html><script>alert(1)</script>"),
		"PDF":               []byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"),
		"plain text":        []byte("hello"),
		"PHP":               []byte("<?php system($_GET['c']);"),
		"a script":          []byte("#!/bin/sh\nid\n"),
		"a Windows program": append([]byte("MZ\x90\x00\x03"), make([]byte, 200)...),
		"WebP":              riffFile(lossyHead(8, 8)),
		"AVIF":              fixture(t, "grid.avif"),
		"HEIC":              fixture(t, "photo.heic"),
	}
	own := map[string]string{"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "gif": "GIF", "svg": "SVG", "webp": "WebP", "avif": "AVIF", "heic": "HEIC"}
	for found, data := range content {
		for ext, kind := range own {
			if kind == found {
				continue
			}
			t.Run(found+" named "+ext, func(t *testing.T) {
				t.Parallel()
				_, err := check(data, ext, imaging.Options{})
				want := "content is " + found + ", the name says ." + ext
				if verdictOf(err) != refused || err.Error() != want {
					t.Errorf("got %q (%s), want %q", err, verdictOf(err), want)
				}
			})
		}
	}
}

func TestCheckImageRefuses(t *testing.T) {
	t.Parallel()
	jpg, pic, anim := drawJPEG(t, 30, 20), drawPNG(t, 30, 20), drawGIF(t, 30, 20, 3)
	flipped := bytes.Clone(pic)
	flipped[len(flipped)-20] ^= 1
	for _, c := range []struct {
		name, ext string
		data      []byte
		message   string
	}{
		{"nothing", "jpg", nil, "the file is empty"},
		{"empty svg", "svg", nil, "the file is empty"},
		{"svg in HTML", "svg", []byte("<!DOCTYPE html>" + svg("")), "content is HTML"},
		{"svg behind HTML", "svg", []byte(`<style>@import "x"</style>` + svg("")), "content is HTML"},
		{"svg behind two byte order marks", "svg", []byte("\xef\xbb\xbf\xef\xbb\xbf" + svg("")), "content is plain text"},
		{"svg in UTF-7 with its mark", "svg", []byte("+/v8-" + svg("")), "content is plain text"},
		{"svg of another root", "svg", []byte(`<g xmlns="http://www.w3.org/2000/svg"/>`), "content is not an SVG image: the root element"},
		{"extension that is no image", "bmp", jpg, "a .bmp file is not accepted"},
		{"extension that would fill the message", "x" + strings.Repeat("\x9b", 1000), jpg, "x\uFFFD file"},
		{"upper case extension", "JPG", jpg, "a .JPG file"},
		{"magic bytes only, jpg", "jpg", []byte("\xff\xd8\xff"), "its end is missing"},
		{"magic bytes only, png", "png", []byte(pngSignature), "its end is missing"},
		{"magic bytes only, gif", "gif", []byte("GIF89a"), "its end is missing"},
		{"gif magic before html", "gif", []byte("GIF89a<html><script>alert(1)</script></html>"), "damaged"},
		{"jpeg magic before php", "jpg", []byte("\xff\xd8\xff\xe0<?php system('id');"), "its end is missing"},
		{"noise named jpg", "jpg", bytes.Repeat([]byte{1, 2, 3, 0}, 99), "not a JPEG image or is damaged"},
		{"png with a flipped bit", "png", flipped, "damaged"},
		{"png whose header is not first", "png", append(append([]byte(pngSignature), chunk("tEXt", nil)...), pic[8:]...), "damaged"},
		{"png with two headers", "png", withChunks(pic, pic[8:33]), "damaged"},
		{"png without data", "png", append(bytes.Clone(pic[:33]), chunk("IEND", nil)...), "damaged"},
		{"png with a chunk longer than the file", "png", append(bytes.Clone(pic[:33]), "\x7f\xff\xff\xffIDATabc"...), "end is missing"},
		{"png with a chunk longer than the format", "png", append(bytes.Clone(pic[:33]), "\x80\x00\x00\x00IDATabc"...), "damaged"},
		{"png of no width", "png", resizedPNG(pic, 0, 5), "damaged"},
		{"png of an unknown colour type", "png", withChunks(append([]byte(pngSignature), chunk("IHDR",
			[]byte{0, 0, 0, 1, 0, 0, 0, 1, 8, 7, 0, 0, 0})...), pic[33:]), "not supported"},
		{"png with an unknown critical chunk", "png", withChunks(pic, chunk("CgBI", make([]byte, 4))), "not supported"},
		{"jpeg of no height", "jpg", resizedJPEG(t, jpg, 30, 0), "no width or no height"},
		{"jpeg without a scan", "jpg", append([]byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"),
			append(bytes.Clone(jpg[2:bytes.Index(jpg, []byte{0xFF, 0xDA})]), 0xFF, 0xD9)...), "damaged"},
		{"jpeg cut off before a whole one", "jpg", append(bytes.Clone(jpg[:len(jpg)-2]), drawJPEG(t, 320, 320)...), "damaged"},
		{"jpeg within a jpeg", "jpg", append(bytes.Clone(jpg[:2]), jpg...), "damaged"},
		{"jpeg with a short segment", "jpg", []byte("\xff\xd8\xff\xe0\x00\x01\xff\xd9"), "damaged"},
		{"jpeg with megabytes of stray bytes", "jpg", append([]byte{0xFF, 0xD8}, make([]byte, 1<<20)...), "end is missing"},
		{
			"jpeg with stray bytes before the tables", "jpg",
			append(append([]byte{0xFF, 0xD8}, make([]byte, 1<<17)...), jpg[2:]...), "damaged",
		},
		{"gif without a frame", "gif", []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), "damaged"},
		{"gif of no size", "gif", manyFrames(1, 0, 0), "no width or no height"},
		{"gif of a loop without its end", "gif", anim[:len(anim)-1], "end is missing"},
		{"gif with an unknown block", "gif", append(bytes.Clone(anim[:len(anim)-1]), 'X'), "damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectRefusal(t, c.data, c.ext, c.message)
		})
	}
}

// expectRefusal expects a content error with a message.
func expectRefusal(t *testing.T, data []byte, ext, message string) {
	t.Helper()
	_, err := check(data, ext, imaging.Options{})
	if verdictOf(err) != refused || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v (%s), want a content error with %q", err, verdictOf(err), message)
	}
}

func TestTruncatedImagesAreRefused(t *testing.T) {
	t.Parallel()
	still := riffFile(extended(flagAlpha|flagEXIF, 40, 40), bitstream(drawWebP(t, shaded(40, 40), webp.Options{})), webpChunk("EXIF", turned(3)))
	files := map[string][]byte{
		"a.jpg": drawJPEG(t, 40, 40), "a.png": drawPNG(t, 40, 40), "a.gif": drawGIF(t, 40, 40, 2), "a.svg": []byte(svg("<g/>")),
		"still.webp": still, "animation.webp": flatAnimation(2, 40, 40),
	}
	for _, name := range []string{"turned.avif", "grid.avif", "sequence.avif", "photo.heic", "thumbnail.heic"} {
		files[name] = fixture(t, name)
	}
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range data {
				if _, err := check(data[:n], strings.TrimPrefix(filepath.Ext(name), "."), imaging.Options{}); verdictOf(err) != refused {
					t.Fatalf("the first %d of %d bytes: %v (%s)", n, len(data), err, verdictOf(err))
				}
			}
		})
	}
}

// brokenReader fails after some bytes.
type brokenReader struct {
	io.Reader
	seekErr error
}

func (b brokenReader) Seek(int64, int) (int64, error) { return 0, b.seekErr }

func TestReaderFailuresAreNoVerdicts(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	images := map[string][]byte{
		"jpg": drawJPEG(t, 40, 40), "png": drawPNG(t, 40, 40), "gif": drawGIF(t, 40, 40, 2), "svg": []byte(svg("")),
		"webp": drawWebP(t, shaded(40, 40), webp.Options{}), "avif": fixture(t, "turned.avif"),
	}
	for ext, data := range images {
		for _, n := range []int{0, 5, 14, 30, 40, 300, len(data) - 3} {
			if n >= len(data) {
				continue
			}
			r := brokenReader{Reader: io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(cause))}
			_, err := imaging.CheckImage(r, int64(len(data)), ext, imaging.Options{})
			if verdictOf(err) != failed || !errors.Is(err, cause) {
				t.Errorf("%s failing after %d bytes: %v (%s)", ext, n, err, verdictOf(err))
			}
		}
		_, err := imaging.CheckImage(brokenReader{Reader: bytes.NewReader(data), seekErr: cause}, 9, ext, imaging.Options{})
		imagingtest.Is(t, err, cause, ext, "failing to seek")
	}
	err := imaging.CheckFile(brokenReader{Reader: iotest.ErrReader(cause)}, "pdf", "application/pdf")
	if verdictOf(err) != failed || !errors.Is(err, cause) {
		t.Errorf("file: %v (%s)", err, verdictOf(err))
	}
}

// slow returns one byte per Read.
type slow struct {
	io.Reader
	io.Seeker
}

func TestPositionOfTheReaderDoesNotMatter(t *testing.T) {
	t.Parallel()
	data := drawPNG(t, 20, 20)
	r := bytes.NewReader(data)
	for range 2 {
		_, err := r.Seek(17, io.SeekStart)
		imagingtest.Must(t, err)
		_, err = imaging.CheckImage(slow{iotest.OneByteReader(r), r}, int64(len(data)), "png", imaging.Options{})
		imagingtest.Must(t, err)
	}
}

// TestEachComponentOfJPEGIsDrawn: a component without a scan that begins at its first coefficient
// is flat. It shows nothing, but costs as much as a real image.
func TestEachComponentOfJPEGIsDrawn(t *testing.T) {
	t.Parallel()
	quick := func(components string) []byte {
		frame := "\x08\x00\x14\x00\x1e\x03" + "\x01\x22\x00\x02\x11\x00\x03\x11\x00"
		return joined([]byte{0xFF, 0xD8}, quantTable(0), textSegment(0xC2, frame), []byte(components), []byte{0xFF, 0xD9})
	}
	scan := func(from byte, components ...byte) string {
		header := []byte{byte(len(components))}
		for _, c := range components {
			header = append(header, c, 0)
		}
		return string(segment(0xDA, append(header, from, 63, 0))) + "U"
	}
	for name, c := range map[string]struct {
		scans string
		want  verdict
	}{
		"in one scan":               {scan(0, 1, 2, 3), passes},
		"in three scans":            {scan(0, 3) + scan(1, 1) + scan(0, 1) + scan(0, 2), passes},
		"luma alone":                {scan(0, 1) + scan(1, 1), refused},
		"from the second on":        {scan(1, 1) + scan(1, 2) + scan(1, 3), refused},
		"another component":         {scan(0, 1, 2) + scan(0, 4), refused},
		"more components than said": {scan(0, 1, 2) + "\xff\xda\x00\x05\x03\x03\x00U", refused},
		"empty header":              {scan(0, 1, 2) + "\xff\xda\x00\x02U", refused},
	} {
		_, err := check(quick(c.scans), "jpg", imaging.Options{})
		if verdictOf(err) != c.want || err != nil && !strings.Contains(err.Error(), "a scan is missing") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestScanOfSequentialJPEG: a sequential image has no refinement scans, whatever its scan headers
// say.
func TestScanOfSequentialJPEG(t *testing.T) {
	t.Parallel()
	img := drawJPEG(t, 8, 8)
	header := bytes.LastIndex(img, []byte{0xFF, 0xDA})
	components := int(img[header+4])
	img[header+5+2*components] = 1 // the first coefficient
	_, err := check(img, "jpg", imaging.Options{})
	imagingtest.Is(t, err, nil)
}

// TestDamagedAnimationIsNotMistaken: the error for a damaged image does not name another type of
// content.
func TestDamagedAnimationIsNotMistaken(t *testing.T) {
	t.Parallel()
	animation := withChunks(drawPNG(t, 8, 8), chunk("acTL", make([]byte, 8)))
	_, err := check(animation[:60], "png", imaging.Options{})
	if err == nil || strings.Contains(err.Error(), "the name says") {
		t.Errorf("got %v", err)
	}
}

func TestSVGModes(t *testing.T) {
	t.Parallel()
	illustrator := `<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/x.dtd" [
		<!ENTITY ns_svg "http://www.w3.org/2000/svg"> <!ENTITY ns_ai 'http://ns.adobe.com/AdobeIllustrator/10.0/'> ]>
		<svg xmlns="&ns_svg;" xmlns:i="&ns_ai;"><g/></svg>`
	script := svg(`<script>alert(1)</script>`)
	for _, c := range []struct {
		name, image string
		mode        imaging.SVGMode
		want        verdict
	}{
		{"reject is the default", script, "", refused},
		{"reject, script", script, imaging.SVGReject, refused},
		{"reject, Illustrator's entities", illustrator, imaging.SVGReject, passes},
		{"a mode that does not exist rejects", script, "allow", refused},
		{"keep, script", script, imaging.SVGKeep, passes},
		{"keep, Illustrator's entities", illustrator, imaging.SVGKeep, passes},
		{"keep, stylesheet", `<?xml-stylesheet href="a.css"?>` + svg(``), imaging.SVGKeep, passes},
		{"keep, not XML", svgOpen, imaging.SVGKeep, refused},
		{"keep, another root", `<g xmlns="http://www.w3.org/2000/svg"/>`, imaging.SVGKeep, refused},
		{"keep, HTML", `<html></html>`, imaging.SVGKeep, refused},
		{"keep, too deep", svg(strings.Repeat("<g>", 200) + strings.Repeat("</g>", 200)), imaging.SVGKeep, tooLarge},
		{"keep, too large", svg(strings.Repeat(" ", 3<<20)), imaging.SVGKeep, tooLarge},
		{"off", svg(``), imaging.SVGOff, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := check([]byte(c.image), "svg", imaging.Options{SVG: c.mode}); verdictOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
