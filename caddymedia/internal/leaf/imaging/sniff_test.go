package imaging_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// mediaTypes are the registered types of the extensions in the tests.
var mediaTypes = map[string]string{
	"pdf": "application/pdf", "rtf": "application/rtf", "txt": "text/plain; charset=utf-8", "md": "text/markdown",
	"csv": "text/csv", "json": "application/json", "xml": "application/xml", "html": "text/html", "svg": "image/svg+xml",
	"doc": "application/msword", "xls": "application/vnd.ms-excel", "ppt": "application/vnd.ms-powerpoint",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"odt":  "application/vnd.oasis.opendocument.text", "ods": "application/vnd.oasis.opendocument.spreadsheet",
	"odp": "application/vnd.oasis.opendocument.presentation", "epub": "application/epub+zip", "jar": "application/java-archive",
	"zip": "application/zip", "7z": "application/x-7z-compressed", "rar": "application/vnd.rar", "gz": "application/gzip",
	"tar": "application/x-tar", "bz2": "application/x-bzip2", "xz": "application/x-xz",
	"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif", "webp": "image/webp",
	"avif": "image/avif", "heic": "image/heic", "tif": "image/tiff", "bmp": "image/bmp", "ico": "image/vnd.microsoft.icon",
	"mp3": "audio/mpeg", "m4a": "audio/mp4", "ogg": "audio/ogg", "wav": "audio/wav", "flac": "audio/flac", "aac": "audio/aac",
	"opus": "audio/opus", "mp4": "video/mp4", "m4v": "video/x-m4v", "mov": "video/quicktime", "webm": "video/webm",
	"mkv": "video/x-matroska", "avi": "video/x-msvideo", "ai": "application/postscript", "srt": "application/x-subrip",
	"exe": "application/x-msdownload", "bin": "application/octet-stream", "py": "text/x-python", "amr": "audio/amr",
}

// archive builds a ZIP of stored files, whose content is their name.
func archive(t testing.TB, names ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range names {
		name, body, _ := strings.Cut(name, "=")
		f, err := w.CreateRaw(&zip.FileHeader{
			Name: name, Method: zip.Store, CompressedSize64: uint64(len(body)), UncompressedSize64: uint64(len(body)),
		})
		imagingtest.Must(t, err)
		_, err = f.Write([]byte(body))
		imagingtest.Must(t, err)
	}
	imagingtest.Must(t, w.Close())
	return b.String()
}

// box returns the start of an ISO media file of the brand.
func box(brand string) string {
	return "\x00\x00\x00\x18ftyp" + brand + "\x00\x00\x02\x00" + brand + "mp41" + "\x00\x00\x00\x08free"
}

func utf16LE(s string) string {
	b := []byte{0xFF, 0xFE}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// samples returns the starts of real files, by kind.
func samples(t testing.TB) map[string]string {
	pad := strings.Repeat("\x00", 600)
	tarHead := []byte("a.txt" + strings.Repeat("\x00", 95) + "0000644\x000000000\x000000000\x0000000000005\x0000000000000\x00        0" +
		strings.Repeat("\x00", 100) + "ustar\x0000" + strings.Repeat("\x00", 247))
	sum := 0
	for _, b := range tarHead {
		sum += int(b)
	}
	copy(tarHead[148:], []byte{'0' + byte(sum>>15&7), '0' + byte(sum>>12&7), '0' + byte(sum>>9&7), '0' + byte(sum>>6&7), '0' + byte(sum>>3&7), '0' + byte(sum&7), 0, ' '})
	return map[string]string{
		"pdf": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "pdf after junk": "\r\njunk\n%PDF-1.4\n%\xe2\xe3\n",
		"rtf": `{\rtf1\ansi hello}`, "text": "Hello, world.\nSecond line.\n", "empty": "",
		"latin text": "caf\xe9 na\xefve\n", "utf-16 text": utf16LE("name;city\nŽofie;Brno\n"), "text from MZ": "MZ-700 manual, page 1\nof the BMW\n",
		"text from BM":  "BMW sales by year\n2020\n",
		"binary text":   "\x01\x02 strange \x00 log",
		"utf-32 text":   "\x00\x00\xfe\xff\x00\x00\x00a",
		"csv":           "name,city\na,b\nc,d\n",
		"tsv":           "name\tcity\na\tb\nc\td\n",
		"json":          `{"a":[1,2,{"b":null}]}`,
		"xml":           `<?xml version="1.0"?><note><to>x</to></note>`,
		"xml comment":   `<!-- a licence --><config><a/></config>`,
		"xml of a":      `<a b="c"><d/></a>`,
		"xml with svg":  `<?xml version="1.0"?><book><svg xmlns="http://www.w3.org/2000/svg"/></book>`,
		"markdown html": "<p align=\"center\">\n\n# Title\n",
		"markdown note": "<!-- badges -->\n# Title\n",
		"ole":           "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + pad,
		"docx":          archive(t, "[Content_Types].xml", "_rels/.rels", "word/document.xml"),
		"xlsx":          archive(t, "[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"),
		"pptx":          archive(t, "[Content_Types].xml", "_rels/.rels", "ppt/presentation.xml"),
		"odt":           archive(t, "mimetype=application/vnd.oasis.opendocument.text", "content.xml"),
		"ods":           archive(t, "mimetype=application/vnd.oasis.opendocument.spreadsheet", "content.xml"),
		"odp":           archive(t, "mimetype=application/vnd.oasis.opendocument.presentation", "content.xml"),
		"epub":          archive(t, "mimetype=application/epub+zip", "META-INF/container.xml"),
		"zip":           archive(t, "a.txt=hello"), "empty zip": archive(t), "first of zip": "PK\x07\x08PK\x03\x04\x14\x00", "jar": archive(t, "META-INF/MANIFEST.MF", "A.class"),
		"7z": "7z\xbc\xaf\x27\x1c\x00\x04", "rar": "Rar!\x1a\x07\x01\x00", "gz": "\x1f\x8b\x08\x00\x00\x00\x00\x00", "bz2": "BZh91AY&SY",
		"xz": "\xfd7zXZ\x00\x00\x04", "tar": string(tarHead), "old tar": "a.txt" + pad,
		"jpg": string(drawJPEG(t, 8, 8)), "png": string(drawPNG(t, 8, 8)), "gif": string(drawGIF(t, 8, 8, 1)),
		"apng": string(withChunks(drawPNG(t, 8, 8), chunk("acTL", make([]byte, 8)))),
		"webp": "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00", "avif": box("avif"), "heic": box("heic"), "heif": box("mif1"),
		"tif": "II*\x00\x08\x00\x00\x00", "tif, big endian": "MM\x00*\x00\x00\x00\x08", "big tif": "II+\x00\x08\x00\x00\x00",
		"bmp": "BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "ico": "\x00\x00\x01\x00\x01\x00",
		"mp3": "\xff\xfb\x90\x64\x00\x0f\xf0\x00", "mp3 with ID3": "ID3\x03\x00\x00\x00\x00\x00\x21TIT2", "mp3 after zeros": pad + strings.Repeat("\xff\xfb\x90\x64"+strings.Repeat("\x00", 413), 3),
		"m4a": box("M4A "), "ogg": "OggS\x00\x02" + strings.Repeat("\x00", 22) + "\x01vorbis", "opus": "OggS\x00\x02" + strings.Repeat("\x00", 22) + "OpusHead",
		"wav": "RIFF\x24\x08\x00\x00WAVEfmt \x10\x00", "rf64": "RF64\xff\xff\xff\xffWAVEds64\x1c\x00\x00\x00", "flac": "fLaC\x00\x00\x00\x22\x10\x00",
		"aac": "\xff\xf1\x50\x80", "mp4": box("isom"), "m4v": box("M4V "), "mov": box("qt  "), "old mov": "\x00\x00\x00\x08wide\x00\x00\x10\x00mdat",
		"webm": "\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm",
		"mkv":  "\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x88matroska",
		"avi":  "RIFF\x00\x10\x00\x00AVI LIST\x00\x10", "srt": "1\n00:00:01,000 --> 00:00:02,000\nHi\n", "amr": "#!AMR\n\x3c\x00", "rust": "#![no_std]\n",
		"html": "<!DOCTYPE html><html><script>alert(1)</script>", "html, late": "\n\n  <!-- x -->\n<html>", "html part": "<script>alert(1)</script>",
		"html table": "<meta charset=utf-8>\n<table><tr><td>1</td></tr></table>",
		"xhtml":      `<?xml version="1.0"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x"><html xmlns="http://www.w3.org/1999/xhtml">`,
		"svg":        svg(``), "svg with prefix": `<?xml version="1.0"?><s:svg xmlns:s="http://www.w3.org/2000/svg"/>`,
		"script of XHTML": `<?xml version="1.0"?><script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>`,
		"php":             "<?php system($_GET['c']);", "shell": "#!/bin/sh\nid\n", "python": "#! /usr/bin/env python3\n",
		"exe": "MZ\x90\x00\x03\x00\x00\x00" + pad, "elf": "\x7fELF\x02\x01\x01\x00" + pad, "macho": "\xcf\xfa\xed\xfe\x07\x00\x00\x01",
		"class": "\xca\xfe\xba\xbe\x00\x00\x00\x34", "lnk": "L\x00\x00\x00\x01\x14\x02\x00", "noise": "\x13\x37\x00\x99" + pad,
	}
}

// accepted lists, by extension, the samples that may have it.
var accepted = map[string]string{
	"pdf": "pdf|pdf after junk", "rtf": "rtf|text", "doc": "ole|rtf|docx|zip|text|xml|html|html part|html, late|xhtml", "xls": "ole|xlsx|csv|tsv|xml|html|html part|html, late|xhtml|html table", "ppt": "ole|pptx",
	"docx": "docx|zip|ole", "xlsx": "xlsx|zip|ole", "pptx": "pptx|zip|ole", "odt": "odt|zip", "ods": "ods|zip", "odp": "odp|zip",
	"txt":  "text|empty|latin text|utf-16 text|text from MZ|text from BM|binary text|utf-32 text|csv|json|xml|html|shell|php|markdown html",
	"md":   "text|empty|latin text|utf-16 text|text from MZ|markdown html|markdown note|html part|shell",
	"csv":  "csv|tsv|text|empty|latin text|utf-16 text|text from MZ|text from BM|utf-32 text|binary text",
	"json": "json|empty|text", "xml": "xml|empty|xml comment|xml of a|xml with svg|html part", "srt": "srt|utf-32 text|text|empty", "html": "html|html part|xhtml|text|html, late",
	"svg": "svg|svg with prefix|empty", "zip": "zip|empty zip|docx|odt|jar|epub|first of zip", "epub": "epub|zip", "jar": "jar|zip",
	"7z": "7z", "rar": "rar", "gz": "gz", "bz2": "bz2", "xz": "xz", "tar": "tar|old tar", "jpg": "jpg", "jpeg": "jpg", "png": "png|apng", "gif": "gif",
	"webp": "webp", "avif": "avif|heif|mp4", "heic": "heic|heif", "tif": "tif|tif, big endian|big tif|mp3 after zeros", "bmp": "bmp", "ico": "ico",
	"mp3": "mp3|mp3 with ID3|mp3 after zeros|wav", "m4a": "m4a|mp4|aac", "ogg": "ogg|opus", "opus": "opus", "wav": "wav|rf64|mp3", "flac": "flac|mp3 with ID3|ogg",
	"aac": "aac|mp3 with ID3|m4a", "mp4": "mp4|m4v|mov|old mov|m4a", "m4v": "m4v|mp4", "mov": "mov|old mov|mp4", "webm": "webm|mkv", "mkv": "mkv|webm", "avi": "avi",
	"ai": "pdf", "exe": "exe", "bin": "exe|elf|macho|noise|zip|empty", "py": "python|text", "amr": "amr", "rs": "rust|text", "dwx": "noise|zip|text|png|empty|xml comment",
}

// refusedFiles lists, by extension, the samples that may not have it. Every extension in accepted
// also refuses the active kinds that are not listed there.
var refusedFiles = map[string]string{
	"pdf": "png|text|zip|empty|noise|ole|json", "doc": "png|pdf|empty|mp3", "docx": "png|pdf|empty|html", "ppt": "html", "xls": "png|pdf|svg|php", "odt": "pdf|png|ole|empty",
	"txt": "png|pdf and noise|zip", "md": "png|zip", "csv": "png|zip|html|mp4", "json": "png|html", "xml": "png|svg|svg with prefix|xhtml|script of XHTML",
	"zip": "png|7z|text|noise|empty", "7z": "zip|noise", "rar": "zip", "gz": "zip|text", "bz2": "gz", "xz": "gz", "tar": "zip|png",
	"jpg": "png|gif|webp|noise|text|empty|pdf", "jpeg": "png", "png": "jpg|gif|noise|empty", "gif": "png|jpg|text|noise",
	"webp": "png|wav|avi|noise", "avif": "png|webp", "heic": "jpg", "tif": "jpg", "bmp": "png|text", "mp3": "png|zip|pdf|text", "mp4": "jpg|zip|text|pdf",
	"wav": "webp|zip", "avi": "png", "epub": "pdf", "svg": "png|html|php", "html": "png|zip|php", "bin": "", "dwx": "",
}

var activeSamples = strings.Split("html|html part|html, late|xhtml|svg|php|shell|python|exe|elf|macho|class|lnk", "|")

func checkFile(ext, content string) error {
	return imaging.CheckFile(strings.NewReader(content), ext, mediaTypes[ext])
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "|")
}

func TestCheckFileAccepts(t *testing.T) {
	t.Parallel()
	files := samples(t)
	for ext, names := range accepted {
		for _, name := range list(names) {
			t.Run(ext+" holding "+name, func(t *testing.T) {
				t.Parallel()
				content, ok := files[name]
				if !ok {
					t.Fatal("no such sample")
				}
				imagingtest.Is(t, checkFile(ext, content), nil)
			})
		}
	}
}

func TestCheckFileRefuses(t *testing.T) {
	t.Parallel()
	files := samples(t)
	files["pdf and noise"] = files["pdf"] + files["noise"]
	for ext, names := range refusedFiles {
		for _, name := range append(list(names), activeSamples...) {
			if strings.Contains("|"+accepted[ext]+"|", "|"+name+"|") || plainIn(ext, files[name]) && slices.Contains(activeSamples, name) {
				continue
			}
			t.Run(ext+" holding "+name, func(t *testing.T) {
				t.Parallel()
				content, ok := files[name]
				if !ok {
					t.Fatal("no such sample")
				}
				err := checkFile(ext, content)
				if verdictOf(err) != refused || !strings.Contains(err.Error(), "."+ext) {
					t.Errorf("got %v (%s)", err, verdictOf(err))
				}
			})
		}
	}
}

// plainIn reports whether any text is harmless under the extension, because it is shown as text.
func plainIn(ext, content string) bool {
	return (ext == "txt" || ext == "md") && !strings.Contains(content, "\x00")
}

func TestCheckFileMessages(t *testing.T) {
	t.Parallel()
	files := samples(t)
	for _, c := range []struct{ ext, sample, want string }{
		{"pdf", "html", "content is HTML, the name says .pdf"},
		{"pdf", "png", "content is PNG, the name says .pdf"},
		{"jpg", "apng", "content is PNG, the name says .jpg"},
		{"png", "jpg", "content is JPEG, the name says .png"},
		{"pdf", "exe", "content is a Windows program, the name says .pdf"},
		{"pdf", "elf", "content is a Linux program, the name says .pdf"},
		{"pdf", "ole", "content is an old Office document, the name says .pdf"},
		{"pdf", "noise", "content is not a .pdf file or is damaged"},
		{"pdf", "empty", "the file is empty, a .pdf file never is"},
		{"pdf", "text", "content is plain text, the name says .pdf"},
		{"pdf", "shell", "content is a script, the name says .pdf"},
	} {
		if err := checkFile(c.ext, files[c.sample]); err == nil || err.Error() != c.want {
			t.Errorf("%s holding %s: got %v, want %s", c.ext, c.sample, err, c.want)
		}
	}
}

func TestCheckFileKnowsAliasesOfMediaTypes(t *testing.T) {
	t.Parallel()
	files := samples(t)
	for _, c := range []struct{ ext, contentType, sample string }{
		{"zip", "application/x-zip-compressed", "zip"},
		{"gz", "application/x-gzip", "gz"},
		{"rtf", "text/rtf", "rtf"},
		{"xml", "text/xml; charset=utf-8", "xml"},
		{"wav", "audio/x-wav", "wav"},
		{"mp3", "audio/mp3", "mp3"},
		{"rar", "application/x-rar-compressed", "rar"},
		{"bmp", "image/x-ms-bmp", "bmp"},
		{"avi", "video/avi", "avi"},
		{"mkv", "video/matroska", "mkv"},
		{"pdf", "", "pdf"},
		{"pdf", "not a type", "pdf"},
		{"jpg", "", "jpg"},
		{"jpg", "image/pjpeg", "jpg"},
	} {
		imagingtest.Is(t, imaging.CheckFile(strings.NewReader(files[c.sample]), c.ext, c.contentType), nil, c.ext, "as", c.contentType)
	}
	for _, contentType := range []string{"", "image/pjpeg", "text/plain", "application/octet-stream"} {
		err := imaging.CheckFile(strings.NewReader(files["png"]), "jpg", contentType)
		imagingtest.Equal(t, verdictOf(err), refused, "a PNG named jpg as", contentType, err)
	}
}

func TestGuess(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some words ", 1000)
	for content, want := range map[string]string{
		"":                                 "",
		"\xff\xd8\xff\xe0 more":            "jpg",
		"\x89PNG\r\n\x1a\n more":           "png",
		"GIF89a more":                      "gif",
		"RIFF\x00\x10\x00\x00WEBPVP8 more": "webp",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR" + strings.Repeat("\x00", 17) + "\x00\x00\x00\x08acTL": "png",
		`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`:                              "svg",
		"%PDF-1.7 more":                   "pdf",
		"<!doctype html><title>x</title>": "html",
		"\x7fELF\x02\x01\x01 more":        "",
		"\x00\x01\x02\x03":                "",
		long:                              "txt",
	} {
		ext, whole, err := imaging.Guess(iotest.HalfReader(strings.NewReader(content)))
		if err != nil || ext != want {
			t.Errorf("%.20q is a .%s, %v, want .%s", content, ext, err, want)
			continue
		}
		if got, err := io.ReadAll(whole); err != nil || string(got) != content {
			t.Errorf("of %.20q there is %.20q, %v", content, got, err)
		}
	}
	broken := errors.New("broken")
	_, _, err := imaging.Guess(io.MultiReader(strings.NewReader("GIF89a"), iotest.ErrReader(broken)))
	imagingtest.Is(t, err, broken, "of a failing reader")
}
