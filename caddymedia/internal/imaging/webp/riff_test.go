package webp_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"testing"

	"github.com/deepteams/webp/mux"

	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/internal/test"
)

func chunkOf(t testing.TB, file []byte, id uint32) []byte {
	t.Helper()
	d, err := mux.NewDemuxer(file)
	test.Must(t, err)
	data, err := d.GetChunk(id)
	test.Must(t, err)
	return data
}

// kinds returns images whose files have all possible structures.
func kinds() map[string]struct {
	img   image.Image
	opts  webp.Options
	flags byte
} {
	type kind = struct {
		img   image.Image
		opts  webp.Options
		flags byte
	}
	return map[string]kind{
		"planes":         {planes(draw(37, 21)), webp.Options{}, 0x20},
		"opaque":         {draw(37, 21), webp.Options{}, 0x20},
		"alpha":          {drawAlpha(37, 21), webp.Options{}, 0x30},
		"lossless":       {draw(37, 21), webp.Options{Lossless: true}, 0x20},
		"lossless alpha": {drawAlpha(37, 21), webp.Options{Lossless: true}, 0x30},
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	for name, k := range kinds() {
		for _, length := range []int{1, 2, 735, 736} {
			profile := bytes.Repeat([]byte{'p'}, length)
			k.opts.Profile = nil
			img := k.img
			if p, ok := img.(*image.YCbCr); ok {
				img, k.img = clonePlanes(p), clonePlanes(p)
			}
			bare := encode(t, img, k.opts)
			k.opts.Profile = profile
			if p, ok := k.img.(*image.YCbCr); ok {
				img = clonePlanes(p)
			}
			file := encode(t, img, k.opts)
			if got := chunkOf(t, file, mux.FourCCICCP); !bytes.Equal(got, profile) {
				t.Errorf("%s: a profile of %d bytes came back as %q", name, length, got)
			}
			if !bytes.Equal(decode(t, file).Pix, decode(t, bare).Pix) {
				t.Errorf("%s: another image", name)
			}
			if id, flags := string(file[12:16]), file[20]; id != "VP8X" || flags != k.flags {
				t.Errorf("%s: %s with flags %#x, want %#x", name, id, flags, k.flags)
			}
			if w, h := uint24(file[24:])+1, uint24(file[27:])+1; w != 37 || h != 21 {
				t.Errorf("%s: a canvas of %d x %d", name, w, h)
			}
			if n := binary.LittleEndian.Uint32(file[4:]); int(n) != len(file)-8 || n%2 != 0 {
				t.Errorf("%s: size %d of a file of %d bytes", name, n, len(file))
			}
		}
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func TestProfileIsReplaced(t *testing.T) {
	t.Parallel()
	file := encode(t, draw(9, 9), webp.Options{Profile: []byte("one")})
	file, err := webp.WithProfile(file, []byte("another"))
	test.Must(t, err)
	if n := bytes.Count(file, []byte("ICCP")); n != 1 || string(chunkOf(t, file, mux.FourCCICCP)) != "another" {
		t.Errorf("%d profiles", n)
	}
	decode(t, file)
}

func TestProfileNeedsAFile(t *testing.T) {
	t.Parallel()
	file := encode(t, drawAlpha(20, 20), webp.Options{})
	for n := range len(file) {
		if _, err := webp.WithProfile(file[:n], []byte("p")); err == nil {
			t.Errorf("passes with %d of %d bytes", n, len(file))
		}
	}
}

func FuzzWithProfile(f *testing.F) {
	for _, k := range kinds() {
		f.Add(encode(f, k.img, k.opts), []byte("profile"))
	}
	f.Fuzz(func(t *testing.T, data, profile []byte) {
		file, err := webp.WithProfile(data, profile)
		if err != nil {
			return
		}
		if string(file[12:16]) != "VP8X" || file[20]&0x20 == 0 || !bytes.Equal(file[38:][:len(profile)], profile) {
			t.Errorf("%q", file[:min(len(file), 60)])
		}
		again, err := webp.WithProfile(file, profile)
		if err != nil || !bytes.Equal(again, file) {
			t.Errorf("a second time: %v", err)
		}
	})
}
