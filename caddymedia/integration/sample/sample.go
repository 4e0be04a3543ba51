// Package sample makes the contents that the end to end tests upload.
package sample

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// Small files.
const (
	SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>`
	PDF = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
)

func img(width, height int) image.Image {
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
	if err := jpeg.Encode(&b, img(width, height), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// PNG returns a small PNG file of this size in pixels.
func PNG(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// GIF returns a small GIF file.
func GIF(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, img(4, 3), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
