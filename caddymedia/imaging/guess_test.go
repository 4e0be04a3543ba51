package imaging

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

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
		ext, whole, err := Guess(iotest.HalfReader(strings.NewReader(content)))
		if err != nil || ext != want {
			t.Errorf("%.20q is a .%s, %v, want .%s", content, ext, err, want)
			continue
		}
		if got, err := io.ReadAll(whole); err != nil || string(got) != content {
			t.Errorf("of %.20q there is %.20q, %v", content, got, err)
		}
	}
	broken := errors.New("broken")
	if _, _, err := Guess(io.MultiReader(strings.NewReader("GIF89a"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("of a failing reader: %v", err)
	}
}
