// Package sample makes the contents that the end to end tests upload.
package sample

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// All returns small complete files by extension.
func All(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"jpg": JPEG(t, 4, 3), "png": PNG(t, 4, 3), "gif": GIF(t), "svg": SVG,
		"pdf": PDF, "txt": "just some words\n", "zip": Zip(t), "gz": Gzip(t),
	}
}

// Small files.
const (
	SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>`
	PDF = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
)

func picture(width, height int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range m.Pix {
		m.Pix[i] = uint8(i % 2)
	}
	return m
}

// JPEG returns a small JPEG file of this size in pixels.
func JPEG(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(width, height), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// PNG returns a small PNG file of this size in pixels.
func PNG(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, picture(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// GIF returns a small GIF file.
func GIF(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, picture(4, 3), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Zip returns a small zip archive.
func Zip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if _, err := w.Create("empty.txt"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Gzip returns a small gzip file.
func Gzip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
