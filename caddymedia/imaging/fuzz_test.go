package imaging_test

import (
	"bytes"
	"runtime"
	"testing"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// measured fails the test if f allocates too much, or if its error is not documented. Its input is
// in memory, so every error must be a refusal.
func measured(t *testing.T, f func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := f()
	runtime.ReadMemStats(&after)
	if verdictOf(err) == failed {
		t.Errorf("undocumented error %v", err)
	}
	if err != nil && (err.Error() == "" || len(err.Error()) > 300 || !utf8.ValidString(err.Error())) {
		t.Errorf("message %q", err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
		t.Errorf("allocated %d bytes", allocated)
	}
}

func FuzzCheckImage(f *testing.F) {
	exts := []string{"jpg", "png", "gif", "webp", "avif", "heic"}
	f.Add(flatAnimation(3, 16, 16), uint8(3))
	f.Add(drawJPEG(f, 16, 16), uint8(0))
	f.Add(drawPNG(f, 16, 16), uint8(1))
	f.Add(withChunks(drawPNG(f, 4, 4), chunk("acTL", make([]byte, 8)), frameChunk(4, 4)), uint8(1))
	f.Add(drawGIF(f, 16, 16, 2), uint8(2))
	f.Add(withChunks(drawPNG(f, 4, 4), p3Chroma, gama(45_455)), uint8(1))
	f.Add(withChunks(drawPNG(f, 4, 4), profileChunk(profile("RGB ", 200)), chunk("cICP", []byte{12, 13, 0, 1})), uint8(1))
	f.Add(withSegments(drawJPEG(f, 8, 8), iccSegment(1, 1, profile("RGB ", 200))), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		measured(t, func() error {
			info, err := check(data, exts[int(kind)%len(exts)], imaging.Options{})
			pixels := int64(info.Width) * int64(info.Height)
			if err == nil && (pixels <= 0 || pixels > 50_000_000 || info.Frames < 1) {
				t.Errorf("passed as %+v", info)
			}
			if len(info.Profile) > 64<<10 || info.Profile != nil && info.ColorLoss != "" {
				t.Errorf("a profile of %d bytes, and %q", len(info.Profile), info.ColorLoss)
			}
			return err
		})
	})
}

// FuzzGIFInStep: the walk counts exactly the frames that the decoder decodes.
func FuzzGIFInStep(f *testing.F) {
	f.Add(drawGIF(f, 16, 16, 2))
	f.Add(hiddenFrame("\x01\x18"))
	f.Add(hiddenFrame("\x01\x0c"))
	f.Add(hiddenFrame("\xff\x00"))
	f.Add(joined(drawGIF(f, 8, 8, 3)[:13], []byte("!\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"), drawGIF(f, 8, 8, 3)[13:]))
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := check(data, "gif", imaging.Options{MaxPixels: 10_000, MaxFramePixels: 100_000})
		if err != nil {
			return
		}
		measured(t, func() error {
			g, err := imaging.DecodeGIF(bytes.NewReader(data), info)
			if err != nil {
				return err
			}
			var pixels int64
			for _, frame := range g.Image {
				pixels += int64(frame.Rect.Dx() * frame.Rect.Dy())
			}
			if len(g.Image) != info.Frames || info.Frames > 1 && pixels != info.FramePixels {
				t.Errorf("%d frames of %d pixels, the walk saw %d of %d", len(g.Image), pixels, info.Frames, info.FramePixels)
			}
			return nil
		})
	})
}

func FuzzCheckFile(f *testing.F) {
	for name, content := range samples(f) {
		f.Add([]byte(content), name, mediaTypes[name])
	}
	f.Fuzz(func(t *testing.T, data []byte, ext, contentType string) {
		measured(t, func() error { return imaging.CheckFile(bytes.NewReader(data), ext, contentType) })
	})
}
