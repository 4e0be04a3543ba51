package testservice

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
)

// Small complete files.
var (
	JPEG = encoded(func(w io.Writer) error { return jpeg.Encode(w, picture(4, 3), nil) })
	GIF  = encoded(func(w io.Writer) error { return gif.Encode(w, picture(4, 3), nil) })
	PNG  = PNGOf(4, 3)
	Zip  = encoded(func(w io.Writer) error {
		z := zip.NewWriter(w)
		_, err := z.Create("empty.txt")
		return errors.Join(err, z.Close())
	})
	Gzip = encoded(func(w io.Writer) error { return gzip.NewWriter(w).Close() })
)

// Small complete files of text.
const (
	SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>`
	PDF = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
)

// Samples are files by extension.
var Samples = map[string]string{
	"jpg": JPEG, "png": PNG, "gif": GIF, "svg": SVG,
	"pdf": PDF, "txt": "just some words\n", "zip": Zip, "gz": Gzip,
}

func encoded(encode func(io.Writer) error) string {
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		panic(err)
	}
	return b.String()
}

func picture(width, height int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range m.Pix {
		m.Pix[i] = uint8(i % 2)
	}
	return m
}

// PNGOf returns a PNG of a size.
func PNGOf(width, height int) string {
	return encoded(func(w io.Writer) error { return png.Encode(w, picture(width, height)) })
}

// GIFOf returns a GIF of a size.
func GIFOf(width, height int) string {
	return encoded(func(w io.Writer) error { return gif.Encode(w, picture(width, height), nil) })
}

// PNGBomb returns a small file that claims to be a large picture.
func PNGBomb(width, height uint32) string {
	chunk := func(kind string, data []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
		b = append(append(b, kind...), data...)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
	}
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	b := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", append(head, 8, 0, 0, 0, 0))...)
	b = append(b, chunk("IDAT", []byte("x\x9c\x03\x00\x00\x00\x00\x01"))...)
	return string(append(b, chunk("IEND", nil)...))
}

// HostileNames are filenames that leave their folder on some system, mean something else to it, or
// confuse those who read them.
var HostileNames = []string{
	"../two/a.txt", "sub/../../two/a.txt", "..", ".", "/", "//a.txt", "a//b.txt", "a/./b.txt", "/etc/passwd.txt", "./a.txt", "a.txt/", "a.txt/.",
	"%2e%2e/a.txt", "..%2ftwo%2fa.txt", "%252e%252e/a.txt", "..%c0%af..%c0%afa.txt", "a.txt%00.png", "a\x00b.txt", "a.txt\x00", "\x00", "a\r\nSet-Cookie: x.txt",
	`..\two\a.txt`, `a\b.txt`, `\\host\share\a.txt`, `C:\a.txt`, "C:a.txt", "con.txt", "CON", "aux.txt", "NUL.txt", "com1.txt", "lpt1.txt", "a.txt.", "a.txt ", " a.txt", "a.txt::$DATA",
	"a.txt:stream.txt", "a<b>.txt", `a"b.txt`, "a|b?.txt", "a*.txt", ".htaccess", ".git/config.txt", "sub/.hidden.txt", "...txt", "a.txt.exe", "a.exe.txt", "a.php", "a.php.txt",
	"@uploads/x.txt", "@uploads/new.txt", "sub/@uploads/new.txt", "a@thumb.txt", "@renditions/a.txt", "A.TXT", "ａ.txt", "a\u202etxt.exe", "a\u200b.txt", "\ufeffa.txt", "e\u0301.txt",
	"\xff.txt", "\xed\xa0\x80.txt", "-rf.txt", "~root.txt", "$(id).txt", "`id`.txt", "{env.HOME}.txt", "{http.request.host}.txt", "%s%n.txt", "<script>.txt",
	strings.Repeat("a", 252) + ".txt", strings.Repeat("a", 1020) + ".txt", strings.Repeat("a", 1021) + ".txt", strings.Repeat("a/", 16) + "a.txt",
	strings.Repeat("a/", 17) + "a.txt", strings.Repeat("ä", 500) + ".txt", "a.txt.webp", "a.png.webp",
}
