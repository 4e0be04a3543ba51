package upload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/color"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
)

func TestStripMetadata(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			alias := pictures(t, s)
			alias.Imaging.Strip = imaging.StripOn
			plain := picture(red)
			items, failures := uploadPictures(t, newUploader(alias),
				file("a.png", withText(plain, "taken at home")+"<?php"), file("b.png", plain))
			if failures != nil {
				t.Fatal(failures)
			}
			for _, it := range items {
				if it.Size != int64(len(plain)) {
					t.Errorf("%s has %d bytes, want %d", it.Filename, it.Size, len(plain))
				}
			}
			wantContents(t, s, map[string]string{
				"a.png": plain, "a.png.webp": webpOf(red), "b.png": plain, "b.png.webp": webpOf(red),
			})
		})
	}
}

// TestDamagedPicture: a picture with a valid structure whose pixels cannot be decoded is refused.
func TestDamagedPicture(t *testing.T) {
	t.Parallel()
	damaged := []byte(picture(red))
	at := bytes.Index(damaged, []byte("IDAT"))
	size := int(binary.BigEndian.Uint32(damaged[at-4:]))
	copy(damaged[at+8:at+4+size], "nonsense")
	binary.BigEndian.PutUint32(damaged[at+4+size:], crc32.ChecksumIEEE(damaged[at:at+4+size]))
	for _, webp := range []*render.Options{nil, {}} {
		s := onMemory(t, nil)
		alias := pictures(t, s)
		alias.WebP = webp
		_, failures := uploadPictures(t, newUploader(alias), file("a.png", picture(blue)), file("b.png", string(damaged)))
		wantFailure(t, failures, aliases.BadContent, "b.png", "damaged")
		wantContents(t, s, nil)
	}
}

// TestManyPictures: items are returned in the order in which they were sent.
func TestManyPictures(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	parts, want := make([]send, 30), make([]string, 30)
	for i := range parts {
		want[i] = fmt.Sprintf("%02d.png", i)
		parts[i] = file(want[i], picture(color.NRGBA{byte(i), 0, 0, 255}))
	}
	items, failures := uploadPictures(t, newUploader(pictures(t, s)), parts...)
	if failures != nil || !slices.Equal(filenames(items), want) {
		t.Errorf("%v (%v)", filenames(items), failures)
	}
}

// TestPanic: a panic is the failure of its item, and no other item is stored.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := onLocal(t, func(op, _ string) error {
		if op == "read" {
			panic(secret)
		}
		return nil
	})
	_, failures := uploadPictures(t, newUploader(pictures(t, s)), file("a.png", picture(red)), file("b.png", picture(red)))
	if len(failures) != 2 || failures[0].Reason != aliases.Internal || !strings.Contains(failures[0].Err.Error(), secret) {
		t.Errorf("%v", failures)
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	failure := aliases.ContentFailure(fmt.Errorf("waiting: %w", render.ErrBusy))
	if failure.Reason != aliases.Busy || !strings.Contains(failure.Message, "try again") {
		t.Errorf("%+v", failure)
	}
}
