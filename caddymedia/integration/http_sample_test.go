package integration

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

// samples returns small complete files by extension.
func samples(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"jpg": jpegOf(t, 4, 3), "png": pngOf(t, 4, 3), "gif": gifOf(t), "svg": svgPicture,
		"pdf": pdfDocument, "txt": "just some words\n", "zip": zipOf(t), "gz": gzipOf(t),
	}
}

const (
	svgPicture = `<svg xmlns="http://www.w3.org/2000/svg" width="4" height="3"><rect width="4" height="3"/></svg>`

	pdfDocument = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
)

func picture(width, height int) image.Image {
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range m.Pix {
		m.Pix[i] = uint8(i % 2)
	}
	return m
}

func jpegOf(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(width, height), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func pngOf(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, picture(width, height)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gifOf(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, picture(4, 3), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zipOf(t *testing.T) string {
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

func gzipOf(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
