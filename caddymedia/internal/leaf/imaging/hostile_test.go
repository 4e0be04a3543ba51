package imaging_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"image"
	"image/jpeg"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// The payloads of the polyglots. All contain one marker, for which a test can search.
const (
	marker = "HOSTILE"
	php    = "<?php system($_GET['" + marker + "']); __HALT_COMPILER(); ?>"
	html   = "<html><script>alert('" + marker + "')</script></html>"
)

// hostileRaster is an image that is also a valid file of another type. It passes, because it is
// complete; its name says why it is harmless. It is stored under the extension of the image. So
// browsers get the type of an image and nosniff, and servers do not run it.
type hostileRaster struct {
	name, ext string
	data      []byte
	// kept reports that the payload is in an essential part of the image, and so is not stripped.
	// Only the media type protects against it. All other payloads are stripped with the metadata.
	kept bool
	// decoded is the result of the full decode; empty means that it passes.
	decoded verdict
}

func runHostileRasters(t *testing.T, cases []hostileRaster) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.ext+", "+c.name, func(t *testing.T) {
			t.Parallel()
			if !bytes.Contains(c.data, []byte(marker)) {
				t.Fatal("the case has no payload")
			}
			info, stripped := strip(t, c.data, c.ext)
			if left := bytes.Contains(stripped, []byte(marker)); left != c.kept || !c.kept && !info.HasMetadata() {
				t.Errorf("the payload is left: %t, want %t", left, c.kept)
			}
			again, err := check(stripped, c.ext, imaging.Options{Strip: imaging.StripOn})
			if err != nil || again.HasMetadata() {
				t.Errorf("without metadata: %v, more of it: %t", err, again.HasMetadata())
			}
			got, err := decodeFully(c.data, info)
			if want := cmp.Or(c.decoded, passes); verdictOf(err) != want {
				t.Fatalf("decoded: %v (%s), want %s", err, verdictOf(err), want)
			}
			if bare, _ := decodeFully(stripped, again); err == nil && !reflect.DeepEqual(got, bare) {
				t.Error("without metadata the pixels differ")
			}
		})
	}
}

// decodeFully decodes every frame with this package.
func decodeFully(data []byte, info imaging.Info) (any, error) {
	if info.Format == imaging.GIF {
		return imaging.DecodeGIF(bytes.NewReader(data), info)
	}
	return imaging.Decode(bytes.NewReader(data), info)
}

func TestHostileTails(t *testing.T) {
	t.Parallel()
	pdf := "\n%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert('" + marker + "'))>>>>endobj\n%%EOF"
	tails := map[string]string{
		"GIFAR, a JAR behind":  archive(t, "META-INF/MANIFEST.MF="+marker, "A.class=\xca\xfe\xba\xbe"),
		"PHAR behind":          php + "\r\n\x2f\x00\x00\x00",
		"PHP behind":           php,
		"HTML behind":          html,
		"SVG behind":           svg("<script>" + marker + "</script>"),
		"PDF behind":           pdf,
		"shell script behind":  "\n#!/bin/sh\n" + marker,
		"program behind":       "MZ\x90\x00" + marker,
		"RAR behind":           "Rar!\x1a\x07\x01\x00" + marker,
		"script comment ends":  "*/=1;alert('" + marker + "')/*",
		"film of a phone":      box("mp42") + marker,
		"a megabyte of zeros":  strings.Repeat("\x00", 1<<20) + marker,
		"a second end, hidden": "\xff\xd9IEND\xae\x42\x60\x82;" + marker,
	}
	cases := make([]hostileRaster, 0, 3*len(tails))
	for ext, data := range map[string][]byte{"jpg": drawJPEG(t, 20, 10), "png": drawPNG(t, 20, 10), "gif": drawGIF(t, 20, 10, 2)} {
		for name, tail := range tails {
			cases = append(cases, hostileRaster{name: name, ext: ext, data: append(bytes.Clone(data), tail...)})
		}
	}
	runHostileRasters(t, cases)
}

func TestHostileJPEG(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 20, 10)
	frame := bytes.Index(jpg, []byte{0xFF, 0xC0})
	with := func(name string, segments ...[]byte) hostileRaster {
		return hostileRaster{name: name, ext: "jpg", data: withSegments(jpg, segments...)}
	}
	// With JFIF the header reader stops at the frame header, so only the full decode reaches later
	// bytes.
	jfif := textSegment(0xE0, "JFIF\x00\x01\x02\x01\x00H\x00H\x00\x00")
	behindFrame := func(segments ...[]byte) []byte {
		return joined(jpg[:2], jfif, jpg[2:frame+19], joined(segments...), jpg[frame+19:])
	}
	// The length of the first segment starts a comment in a script, and the rest of the image is
	// its body.
	script := "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00" + strings.Repeat("\x00", 0x2F2A-2-14)
	camera := exif(binary.BigEndian, tiffEntry{0x010F, 2, uint32(len(php)), [4]byte{0, 0, 0, 26}})
	described := profile("RGB ", 300)
	copy(described[140:], php)
	tar := make([]byte, 512)
	copy(tar, marker+".phar")
	copy(tar[257:], "ustar\x0000")
	runHostileRasters(t, []hostileRaster{
		with("PHP in a comment", textSegment(0xFE, php)),
		with("PHAR stub in a comment", textSegment(0xFE, php+"\r\n")),
		with("HTML in a comment", textSegment(0xFE, "--><!--"+html)),
		with("PDF in a comment", textSegment(0xFE, "%PDF-1.4\n"+marker+"\n%%EOF")),
		with("PDF in the first segment", textSegment(0xE0, "%PDF-1.4\n"+marker)),
		with("archive in a comment", textSegment(0xFE, archive(t, "a.php="+php))),
		with("tar around the image", segment(0xFE, tar)),
		with("HTML in EXIF", exifSegment(append(onlyTurned(6), html...))),
		with("PHP as the maker in EXIF", exifSegment(append(camera, php...))),
		with("HTML as the thumbnail in EXIF", exifSegment(append(turned(3), html...))),
		with("Perl in EXIF for ExifTool", exifSegment(append(onlyTurned(1), "AT&TFORM\x00\x00\x00\x08DJVMDJVUANTa(metadata \"\\c${system('"+marker+"')};\")"...))),
		with("script in XMP", textSegment(0xE1, xmpName+"<x:xmpmeta><script>"+marker+"</script></x:xmpmeta>")),
		with("external entity in XMP", textSegment(0xE1, xmpName+`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///`+marker+`">]><x>&e;</x>`)),
		with("command in Photoshop's segment", textSegment(0xED, "Photoshop 3.0\x008BIM"+php)),
		with("HTML in a thumbnail of JFXX", textSegment(0xE0, "JFXX\x00\x13"+html)),
		with("MPF with a second image", textSegment(0xE2, "MPF\x00"+marker)),
		with("PHP between segments", []byte(php)),
		with("script polyglot", textSegment(0xE0, script), textSegment(0xFE, "*/=alert('"+marker+"')/*")),
		{name: "HTML in a reserved segment", ext: "jpg", data: behindFrame(textSegment(0xF7, html)), decoded: refused},
		{name: "PHP between scans", ext: "jpg", data: beforeEnd(jpg, 2, textSegment(0xFE, php))},
		{name: "PHP in the profile", ext: "jpg", data: withSegments(jpg, iccSegment(1, 1, described)), kept: true},
		{name: "PHP behind the last coded pixel", ext: "jpg", data: beforeEnd(jpg, 2, []byte(php)), kept: true},
		{name: "HTML in a header of hierarchies", ext: "jpg", data: behindFrame(textSegment(0xDE, html)), kept: true, decoded: refused},
		{name: "HTML in an extension of the standard", ext: "jpg", data: behindFrame(textSegment(0xC8, html)), kept: true, decoded: refused},
		{name: "HTML in the restart interval", ext: "jpg", data: behindFrame(textSegment(0xDD, html)), kept: true, decoded: refused},
		{name: "HTML in arithmetic tables", ext: "jpg", data: behindFrame(textSegment(0xCC, html)), kept: true, decoded: refused},
		{name: "HTML in a Huffman table", ext: "jpg", data: behindFrame(textSegment(0xC4, html)), kept: true, decoded: refused},
		{
			name: "PHP in a quantisation table", ext: "jpg", kept: true,
			data: withSegments(jpg, append([]byte{0xFF, 0xDB, 0, 67, 2}, padded(php, 64)...)),
		},
		{
			name: "a second frame header", ext: "jpg", kept: true, decoded: refused,
			data: behindFrame(jpg[frame:frame+19], textSegment(0xDC, marker)),
		},
	})
}

func TestHostilePNG(t *testing.T) {
	t.Parallel()
	pic := drawPNG(t, 20, 10)
	with := func(name, kind, data string) hostileRaster {
		return hostileRaster{name: name, ext: "png", data: withChunks(pic, chunk(kind, []byte(data)))}
	}
	kept := func(name, kind, data string) hostileRaster {
		c := with(name, kind, data)
		c.kept = true
		return c
	}
	described := profile("RGB ", 200)
	copy(described[140:], marker)
	stuffed := joined([]byte(pngSignature), header(1, 1, 8, 0), chunk("IDAT", []byte(stored("\x00\x00")+php)), chunk("IEND", nil))
	runHostileRasters(t, []hostileRaster{
		with("PHP in a text", "tEXt", "Comment\x00"+php),
		with("HTML in a text, as the sniffers see it", "tEXt", html+"\x00"+html),
		with("PHP in a text of UTF-8", "iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+php),
		with("PHP in a packed text", "zTXt", "Comment\x00\x00"+php),
		with("PHP in EXIF", "eXIf", string(onlyTurned(6))+php),
		with("profile of ImageMagick that names a file", "tEXt", "profile\x00/etc/"+marker),
		with("program in a private chunk", "prVt", "MZ\x90\x00"+marker),
		with("archive in a private chunk", "prVt", archive(t, "a.php="+php)),
		with("HTML as the time", "tIME", html),
		{name: "PHP in a text behind the pixels", ext: "png", data: beforeEnd(pic, 12, chunk("tEXt", []byte("a\x00"+php)))},
		{name: "PHP in the pixels", ext: "png", data: paintedPNG(php), kept: true},
		{name: "HTML in the pixels", ext: "png", data: paintedPNG(html), kept: true},
		{name: "PHP in the palette", ext: "png", data: palettePNG(php), kept: true},
		kept("PHP in a palette that nobody uses", "PLTE", padded(php, 60)),
		kept("PHP in a suggested palette", "sPLT", php),
		with("PHP in the gamma", "gAMA", php),
		kept("name of the profile", "iCCP", marker+"\x00\x00"+string(deflated(described))),
		with("frame of an animation that is none", "fdAT", php),
		{name: "PHP in a chunk behind the pixels", ext: "png", data: beforeEnd(pic, 12, chunk("IDAT", []byte(php))), kept: true},
		{name: "PHP behind the pixels in their chunk", ext: "png", data: stuffed, kept: true},
		{name: "PHP in the last chunk", ext: "png", data: joined(pic[:len(pic)-12], chunk("IEND", []byte(php))), kept: true, decoded: refused},
	})
}

func TestHostileGIF(t *testing.T) {
	t.Parallel()
	pic := drawGIF(t, 20, 10, 1)
	before := func(block string) []byte { return joined(pic[:len(pic)-1], []byte(block), []byte(";")) }
	blocks := func(s string) string { return string(rune(len(s))) + s + "\x00" }
	// The width starts a comment in a script. The comment ends behind the image.
	wide := drawGIF(t, 0x2A2F, 2, 1)
	scripted := append(bytes.Clone(wide), "*/=1;alert('"+marker+"')//"...)
	commented := joined(wide[:len(wide)-1], []byte("!\xfe"+blocks("*/=1;alert('"+marker+"')/*")), []byte(";"))
	frame := bytes.LastIndexByte(pic[:len(pic)-2], ',')
	runHostileRasters(t, []hostileRaster{
		{name: "PHP in a comment", ext: "gif", data: before("!\xfe" + blocks(php))},
		{name: "HTML in a comment", ext: "gif", data: before("!\xfe" + blocks(html))},
		{name: "archive in a comment", ext: "gif", data: before("!\xfe" + blocks(archive(t, "a="+marker)))},
		{name: "HTML in an application", ext: "gif", data: before("!\xff\x0bMGK8BIM0000" + blocks(html))},
		{name: "script in XMP", ext: "gif", data: before("!\xff\x0bXMP DataXMP" + blocks("<script>"+marker))},
		{name: "HTML as a text to render", ext: "gif", data: before("!\x01\x0c" + strings.Repeat("\x00", 12) + blocks(html))},
		{name: "HTML in an unknown extension", ext: "gif", data: before("!\x42" + blocks(html))},
		{name: "script polyglot, script behind", ext: "gif", data: scripted},
		{name: "script polyglot, script in a comment", ext: "gif", data: commented},
		{name: "HTML in the loop", ext: "gif", data: before("!\xff\x0bNETSCAPE2.0" + blocks(html))},
		{name: "PHP in the profile", ext: "gif", data: before("!\xff\x0bICCRGBG1012" + blocks(php)), kept: true},
		{name: "PHP in the control of a frame", ext: "gif", data: before("!\xf9" + blocks(php)), kept: true, decoded: refused},
		{
			name: "PHP in the colours", ext: "gif", kept: true,
			data: joined(pic[:10], []byte{0x84, 0, 0}, []byte(padded(php, 96)), pic[frame:]),
		},
		{
			name: "PHP behind the coded pixels", ext: "gif", kept: true,
			data: joined(pic[:len(pic)-2], []byte(blocks(php)+";")),
		},
	})
}

// padded pads a payload to n bytes, none of them zero.
func padded(s string, n int) string { return (s + strings.Repeat(" ", n))[:n] }

// stored packs pixels without compression, so that the file contains them unchanged.
func stored(rows ...string) string {
	raw := strings.Join(rows, "")
	b := []byte{0x78, 1, 1}
	b = binary.LittleEndian.AppendUint16(b, uint16(len(raw)))
	b = append(binary.LittleEndian.AppendUint16(b, ^uint16(len(raw))), raw...)
	return string(binary.BigEndian.AppendUint32(b, adler32.Checksum([]byte(raw))))
}

func header(width, height int, depth, kind byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(width))
	return chunk("IHDR", append(binary.BigEndian.AppendUint32(b, uint32(height)), depth, kind, 0, 0, 0))
}

// paintedPNG returns a grey image whose pixels are the text.
func paintedPNG(text string) []byte {
	return joined([]byte(pngSignature), header(len(text), 2, 8, 0),
		chunk("IDAT", []byte(stored("\x00"+text, "\x00"+text))), chunk("IEND", nil))
}

// palettePNG returns an image whose colours are the text.
func palettePNG(text string) []byte {
	colors := padded(text, (len(text)+2)/3*3)
	return joined([]byte(pngSignature), header(1, 1, 8, 3), chunk("PLTE", []byte(colors)),
		chunk("IDAT", []byte(stored("\x00\x00"))), chunk("IEND", nil))
}

// TestPaintedPayloadIsPixels: decoding a payload that is painted as pixels returns exactly its
// bytes.
func TestPaintedPayloadIsPixels(t *testing.T) {
	t.Parallel()
	data := paintedPNG(php)
	info, _ := strip(t, data, "png")
	img, err := imaging.Decode(bytes.NewReader(data), info)
	imagingtest.Must(t, err)
	if grey, ok := img.(*image.Gray); !ok || string(grey.Pix[:len(php)]) != php {
		t.Errorf("got %T", img)
	}
}

// TestHostileNames: files of other programs, and programs, are named like an image.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	mvg := "push graphic-context\nviewbox 0 0 640 480\nfill 'url(https://127.0.0.1/x.png\"|id;\")'\npop graphic-context\n"
	msl := `<?xml version="1.0"?><image><read filename="caption:&lt;?php ?&gt;"/><write filename="info:/tmp/x.php"/></image>`
	eps := "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(%pipe%id) (w) file\n"
	files := samples(t)
	for name, content := range map[string]string{
		"MVG of ImageMagick": mvg, "MSL of ImageMagick": msl, "viewbox of ImageMagick": "viewbox 0 0 1 1 image over 0,0 0,0 'label:@/etc/passwd'",
		"PostScript": eps, "PostScript that restores": "%!PS\nuserdict /setpagedevice undef\nsave\nlegal\n{ null restore } stopped\n",
		"EPS for DOS": "\xc5\xd0\xd3\xc6\x1e\x00\x00\x00" + eps, "PCL XL": ") HP-PCL XL;2;0\n", "DjVu with Perl": "AT&TFORM\x00\x00\x00\x40DJVMANTa(metadata \"\\c${id}\")",
		"SVG": svg("<script>alert(1)</script>"), "SVG with a declaration": `<?xml version="1.0"?>` + svg("<script>alert(1)</script>"), "XHTML": files["xhtml"], "HTML": files["html"],
		"XML with a stylesheet": `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="#a"?><a/>`, "MHTML": "MIME-Version: 1.0\nContent-Type: text/html\n\n" + html,
		"HEIC": files["heic"], "HEIF": files["heif"], "AVIF": files["avif"], "WebP": files["webp"], "TIFF": files["tif"], "BMP": files["bmp"], "icon": files["ico"],
		"JPEG XL": "\xff\x0a\xfa\x1f", "JPEG XL in boxes": "\x00\x00\x00\x0cJXL \x0d\x0a\x87\x0a", "JPEG 2000": "\x00\x00\x00\x0cjP  \x0d\x0a\x87\x0a",
		"JPEG-LS": "\xff\xd8\xff\xf7\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00", "Photoshop": "8BPS\x00\x01" + strings.Repeat("\x00", 60), "Flash": "CWS\x0a\x00\x00\x00\x00x\x9c",
		"MNG": "\x8aMNG\r\n\x1a\n", "JNG": "\x8bJNG\r\n\x1a\n", "PNG behind a space": " " + files["png"], "PNG behind HTML": html + files["png"],
		"JPEG behind a PDF": "%PDF-1.4\n" + files["jpg"], "JPEG behind PHP": php + files["jpg"], "GIF behind a line end": "\n" + files["gif"],
		"HTML behind the signature of PNG": pngSignature + html, "HTML behind half a signature of PNG": "\x89PNG\n" + html,
		"HTML behind the signature of GIF87a": "GIF87a" + html, "script behind the signature of GIF": "GIF89a=/*;*/1;alert('" + marker + "')", "script that assigns to GIF89a": "GIF89a/*" + html + "*/=1;",
		"HTML behind the signature of JPEG": "\xff\xd8\xff\xe0\x00\x10JFIF\x00" + html, "HTML behind the start of JPEG": "\xff\xd8" + html, "PHP behind Exif": "\xff\xd8\xff\xe1\x00\x20Exif\x00\x00" + php,
		"tar": files["tar"], "JAR": files["jar"], "7z": files["7z"], "cabinet": "MSCF\x00\x00\x00\x00", "shortcut": files["lnk"], "Java class": files["class"], "Linux program": files["elf"],
		"htaccess": "AddType application/x-httpd-php .jpg\n", "server-side include": `<!--#exec cmd="id" -->`, "ASP": "<%@ Page Language=\"C#\" %>", "JSP": "<% Runtime.getRuntime().exec(\"id\"); %>",
	} {
		for _, ext := range []string{"jpg", "png", "gif", "svg"} {
			if ext == "svg" && strings.HasPrefix(name, "SVG") {
				continue // see the tests of SVG
			}
			t.Run(name+", named "+ext, func(t *testing.T) {
				t.Parallel()
				_, err := check([]byte(content), ext, imaging.Options{})
				imagingtest.Equal(t, verdictOf(err), refused, err)
				t.Log(err)
			})
		}
	}
}

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
			imagingtest.Equal(t, whole, bytes.Equal(got, data), "it is not as it was sent")
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
		"header of a PNG":  {drawPNG(t, 500, 200)[:200], "png", image.Pt(500, 200)},
		"header of a GIF":  {drawGIF(t, 500, 200, 2)[:900], "gif", image.Pt(500, 200)},
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

// TestReadHeaderOfStart: the start of a file has the size of the image, turned as it is shown, or
// none. most is a number of bytes that is enough.
func TestReadHeaderOfStart(t *testing.T) {
	t.Parallel()
	wide, photo := drawPNG(t, 90, 40), drawJPEG(t, 90, 40)
	lossy, alpha := drawWebP(t, opaque(90, 40), webp.Options{}), drawWebP(t, shaded(90, 40), webp.Options{})
	for name, c := range map[string]struct {
		data []byte
		ext  string
		most int
	}{
		"JPEG":            {withSegments(photo, exifSegment(turned(6))), "jpg", 900},
		"PNG":             {wide, "png", 60},
		"turned PNG":      {withChunks(wide, chunk("eXIf", turned(6))), "png", 200},
		"GIF":             {drawGIF(t, 90, 40, 3), "gif", 900},
		"GIF of a frame":  {drawGIF(t, 90, 40, 1), "gif", 900},
		"WebP":            {lossy, "webp", 40},
		"WebP with alpha": {alpha, "webp", 60},
		"turned WebP":     {riffFile(extended(flagEXIF, 90, 40), bitstream(lossy), webpChunk("EXIF", turned(6))), "webp", 1 << 20},
		"animated WebP":   {flatAnimation(3, 90, 40), "webp", 70},
		"turned AVIF":     {fixture(t, "turned.avif"), "avif", 550},
		"AVIF of tiles":   {fixture(t, "grid.avif"), "avif", 600},
		"HEIC":            {fixture(t, "photo.heic"), "heic", 600},
		"SVG":             {[]byte(`<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40"><g/></svg>`), "svg", 63},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, err := check(c.data, c.ext, imaging.Options{})
			want := whole.UprightSize()
			if err != nil || want.X == 0 {
				t.Fatal(want, err)
			}
			for n := range len(c.data) + 1 {
				info, err := imaging.ReadHeader(bytes.NewReader(c.data[:n]), int64(len(c.data)), c.ext, imaging.Options{})
				got := info.UprightSize()
				if got != want && got != (image.Point{}) || n >= min(c.most, len(c.data)) && (got != want || err != nil) {
					t.Fatalf("of %d of %d bytes: %v, %v, want %v", n, len(c.data), got, err, want)
				}
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
