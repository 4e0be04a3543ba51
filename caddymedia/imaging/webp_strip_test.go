package imaging_test

import (
	"bytes"
	"image"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

func TestStripWebP(t *testing.T) {
	t.Parallel()
	simple := drawWebP(t, opaque(30, 20), webp.Options{})
	pixels := bitstream(simple)
	alpha := bitstream(drawWebP(t, shaded(30, 20), webp.Options{}))
	six, gps, xmp := webpChunk("EXIF", onlyTurned(6)), webpChunk("EXIF", turned(6)), webpChunk("XMP ", []byte("<x/>"))
	icc, alph := webpChunk("ICCP", profile("RGB ", 200)), webpChunk("ALPH", []byte{0, 1})
	of := func(flags byte, chunks ...[]byte) []byte { return riffFile(extended(flags, 30, 20), joined(chunks...)) }
	odd := webpChunk("VP8 ", append(lossyHead(30, 20)[8:], 0))
	runStripCases(t, "webp", []stripCase{
		{"nothing to do", simple, simple},
		{"alpha", of(flagAlpha, alpha), of(flagAlpha, alpha)},
		{"a profile", of(flagProfile, icc, pixels), of(flagProfile, icc, pixels)},
		{"a late profile", of(flagProfile, pixels, icc), of(flagProfile, pixels, icc)},
		{"the orientation alone", of(flagEXIF, pixels, six), of(flagEXIF, pixels, six)},
		{"its position", of(flagEXIF, six, pixels), of(flagEXIF, six, pixels)},

		{"EXIF of a turned image", of(flagEXIF, pixels, gps), of(flagEXIF, pixels, six)},
		{"EXIF before the pixels", of(flagEXIF, gps, pixels), of(flagEXIF, pixels, six)},
		{"EXIF without its flag", of(0, pixels, gps), of(flagEXIF, pixels, six)},
		{"upright EXIF", of(flagEXIF, pixels, webpChunk("EXIF", turned(1))), of(0, pixels)},
		{"orientation 1 alone", of(flagEXIF, pixels, webpChunk("EXIF", onlyTurned(1))), of(0, pixels)},
		{"EXIF with the prefix of JPEG", of(flagEXIF, pixels, webpChunk("EXIF", append([]byte("Exif\x00\x00"), onlyTurned(6)...))), of(flagEXIF, pixels, six)},
		{"EXIF twice", of(flagEXIF, pixels, six, webpChunk("EXIF", turned(3))), of(flagEXIF, pixels, six)},
		{"the flag of EXIF alone", of(flagEXIF, pixels), of(0, pixels)},
		{"XMP", of(flagXMP|flagAlpha, alpha, xmp), of(flagAlpha, alpha)},
		{"all", of(0xFF&^flagAnimation, icc, webpChunk("what", []byte("GPS")), alpha, gps, xmp), of(0xFF&^flagAnimation&^flagXMP, icc, alpha, six)},
		{"a second profile", of(flagProfile, icc, icc, pixels), of(flagProfile, icc, pixels)},
		{"a second image", of(0, pixels, pixels), of(0, pixels)},
		{"alpha before lossless", of(0, webpChunk("ALPH", []byte("GPS")), losslessHead(30, 20)), of(0, losslessHead(30, 20))},
		{"alpha before a profile", of(flagAlpha, alph, icc, pixels), of(flagAlpha, alph, icc, pixels)},
		{"alpha before a profile, and XMP", of(flagAlpha, alph, icc, pixels, xmp), of(flagAlpha, alph, icc, pixels)},
		{"chunks behind a simple image", riffFile(pixels, gps, xmp, pixels), simple},
		{"bytes behind the last chunk", riffFile(pixels, []byte("GPS")), simple},
		{"behind the end", append(bytes.Clone(simple), "TRAILER"...), simple},
		{"a missing padding", riffFile(odd[:19]), riffFile(odd)},
		{"a missing padding before EXIF", of(0, gps, odd[:19]), of(flagEXIF, odd, six)},
	})
}

func TestStripAnimatedWebP(t *testing.T) {
	t.Parallel()
	all, part := image.Rect(0, 0, 30, 20), image.Rect(2, 4, 10, 10)
	loop, what := animHead(2), webpChunk("what", []byte("GPS"))
	of := func(flags byte, chunks ...[]byte) []byte {
		return riffFile(extended(flagAnimation|flags, 30, 20), joined(chunks...))
	}
	first, second := frameWebP(all, 70, 0, lossyHead(30, 20)), frameWebP(part, 80, 3, webpChunk("ALPH", []byte{0, 1, 2}), lossyHead(8, 6))
	six := webpChunk("EXIF", onlyTurned(6))
	runStripCases(t, "webp", []stripCase{
		{"nothing to do", of(flagAlpha, loop, first, second), of(flagAlpha, loop, first, second)},
		{"between frames", of(0, what, loop, what, first, what, second, what), of(0, loop, first, second)},
		{"two loops", of(0, loop, loop, first), of(0, loop, first)},
		{"within a frame", of(0, loop, frameWebP(all, 70, 0, lossyHead(30, 20), what), second), of(0, loop, first, second)},
		{
			"within frames, and EXIF",
			of(0, loop, frameWebP(all, 70, 0, lossyHead(30, 20), what, what), first, webpChunk("EXIF", turned(6)),
				frameWebP(part, 80, 3, webpChunk("ALPH", []byte{0, 1, 2}), lossyHead(8, 6), what)),
			of(flagEXIF, loop, first, first, second, six),
		},
		{"a few bytes within a frame", of(0, loop, frameWebP(all, 70, 0, lossyHead(30, 20), []byte("GPS"))), of(0, loop, first)},
		{"an image behind the frames", of(0, loop, first, lossyHead(30, 20)), of(0, loop, first)},
	})
}
