package imaging_test

import (
	"bytes"
	"image"
	"reflect"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// canvasesOf returns the pixels of all frames.
func canvasesOf(data []byte, info imaging.Info) (pixels [][]byte, err error) {
	for canvas, err := range imaging.WebPCanvases(bytes.NewReader(data), info) {
		if err != nil {
			return pixels, err
		}
		pixels = append(pixels, bytes.Clone(canvas.Image.Pix))
	}
	return pixels, nil
}

// FuzzWebP: a checked image decodes within its limits or is refused. Without metadata it is valid
// and shows the same.
func FuzzWebP(f *testing.F) {
	lossy, alpha := drawWebP(f, opaque(16, 16), webp.Options{}), drawWebP(f, shaded(16, 16), webp.Options{})
	exact := drawWebP(f, shaded(16, 16), webp.Options{Lossless: true})
	all := image.Rect(0, 0, 16, 16)
	for _, seed := range [][]byte{
		lossy, alpha, exact, flatAnimation(2, 4, 4), riffFile(lossyHead(30, 20)),
		riffFile(extended(flagEXIF|flagXMP, 16, 16), bitstream(lossy), webpChunk("EXIF", turned(6)), webpChunk("XMP ", nil)),
		riffFile(extended(flagProfile, 16, 16), webpChunk("ICCP", profile("RGB ", 200)), bitstream(exact), []byte("ab")),
		riffFile(extended(flagAnimation, 16, 16), animHead(2), frameWebP(all, 9, 1, bitstream(alpha)),
			frameWebP(all, 9, 2, bitstream(exact), webpChunk("what", nil)), webpChunk("EXIF", onlyTurned(3))),
	} {
		f.Add(seed)
	}
	opts := imaging.Options{Strip: imaging.StripOn, MaxPixels: 10_000, MaxFramePixels: 100_000}
	f.Fuzz(func(t *testing.T, data []byte) {
		var info imaging.Info
		measured(t, func() (err error) {
			info, err = check(data, "webp", opts)
			return err
		})
		if info.Format == "" {
			return
		}
		_, once := strip(t, data, "webp")
		again, twice := strip(t, once, "webp")
		want, got := described(info), described(again)
		want.End = int64(len(once))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("was %+v, is %+v", want, got)
		}
		if again.HasMetadata() || !bytes.Equal(once, twice) || info.HasMetadata() == bytes.Equal(once, data) {
			t.Errorf("HasMetadata is %t, then %t", info.HasMetadata(), again.HasMetadata())
		}
		if info.FramePixels > 20_000 { // the rest takes long
			return
		}
		before, cause := canvasesOf(data, info)
		if verdictOf(cause) == failed || cause == nil && len(before) != info.Frames {
			t.Errorf("%d frames of %d: %v", len(before), info.Frames, cause)
		}
		after, again2 := canvasesOf(once, again)
		if !reflect.DeepEqual(before, after) || (cause == nil) != (again2 == nil) {
			t.Errorf("the pixels differ: %v, %v", cause, again2)
		}
		img, err := imaging.Decode(bytes.NewReader(data), info)
		if planes, ok := img.(*image.YCbCr); ok && (info.Alpha || info.Lossless || planes.SubsampleRatio != image.YCbCrSubsampleRatio420) {
			t.Errorf("a %T of %+v", img, described(info))
		}
		if err == nil && (img.Bounds() != image.Rect(0, 0, info.Width, info.Height)) || err == nil != (len(before) > 0) {
			t.Errorf("decoded to %v, %v", img, err)
		}
	})
}
