package imaging_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

func TestCheckWebPDescribesWhatPasses(t *testing.T) {
	t.Parallel()
	lossy, alpha := drawWebP(t, opaque(30, 20), webp.Options{}), drawWebP(t, shaded(30, 20), webp.Options{})
	exact, clear := drawWebP(t, opaque(30, 20), webp.Options{Lossless: true}), drawWebP(t, shaded(30, 20), webp.Options{Lossless: true})
	rgb := profile("RGB ", 200)
	for _, c := range []struct {
		name string
		data []byte
		want imaging.Info
	}{
		{"lossy", lossy, imaging.Info{}},
		{"lossy with alpha", alpha, imaging.Info{Alpha: true}},
		{"lossless", exact, imaging.Info{Lossless: true}},
		{"lossless with alpha", clear, imaging.Info{Lossless: true, Alpha: true}},
		{"with a profile", drawWebP(t, opaque(30, 20), webp.Options{Profile: rgb}), imaging.Info{Profile: rgb}},
		{"with a profile of grey", riffFile(extended(flagProfile, 30, 20), webpChunk("ICCP", profile("GRAY", 200)), bitstream(lossy)), imaging.Info{}},
		{"turned", riffFile(extended(flagEXIF, 30, 20), bitstream(lossy), webpChunk("EXIF", turned(6))), imaging.Info{Orientation: 6}},
		{
			"turned, with the prefix of JPEG",
			riffFile(extended(flagEXIF, 30, 20), bitstream(lossy), webpChunk("EXIF", append([]byte("Exif\x00\x00"), turned(8)...))),
			imaging.Info{Orientation: 8},
		},
		{"EXIF in a simple file", riffFile(bitstream(lossy), webpChunk("EXIF", turned(6))), imaging.Info{}},
		{"without the last padding", riffFile(webpChunk("VP8 ", append(lossyHead(30, 20)[8:], 0))[:19]), imaging.Info{}},
		{"with three bytes at the end", riffFile(bitstream(lossy), []byte("abc")), imaging.Info{}},
		{"animation", flatAnimation(3, 30, 20), imaging.Info{Animated: true, Frames: 3, FramePixels: 1800, Loops: 3}},
		{
			"animation of small frames",
			riffFile(extended(flagAnimation|flagAlpha, 30, 20), animHead(0), frameWebP(image.Rect(4, 6, 30, 20), 5, 0, lossyHead(26, 14)),
				frameWebP(image.Rect(0, 0, 2, 2), 0, 3, losslessHead(2, 2), webpChunk("what", nil))),
			imaging.Info{Animated: true, Frames: 2, FramePixels: 368, Lossless: true, Alpha: true},
		},
		{
			"animation of one small frame",
			riffFile(extended(flagAnimation, 30, 20), animHead(0), frameWebP(image.Rect(0, 0, 30, 18), 5, 0, lossyHead(30, 18))),
			imaging.Info{Alpha: true},
		},
		{"animation of one frame", flatAnimation(1, 30, 20), imaging.Info{Loops: 3}},
		{"frames without the flag", riffFile(extended(0, 30, 20), animHead(0), frameWebP(image.Rect(0, 0, 1, 1), 0, 0), bitstream(lossy)), imaging.Info{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Format, c.want.Width, c.want.Height, c.want.Frames = imaging.WebP, 30, 20, max(1, c.want.Frames)
			c.want.Orientation, c.want.End = max(imaging.Upright, c.want.Orientation), int64(len(c.data))
			if c.want.FramePixels == 0 {
				c.want.FramePixels = 600
			}
			got, err := check(append(bytes.Clone(c.data), "tail"...), "webp", imaging.Options{})
			if err != nil || !reflect.DeepEqual(described(got), c.want) {
				t.Errorf("got %+v, %v; want %+v", described(got), err, c.want)
			}
		})
	}
}

func TestCheckWebPRefuses(t *testing.T) {
	t.Parallel()
	anim := func(chunks ...[]byte) []byte {
		return riffFile(extended(flagAnimation, 30, 20), animHead(0), joined(chunks...))
	}
	all := image.Rect(0, 0, 30, 20)
	video := lossyHead(30, 20)
	video[8] = 1 // no key frame
	later := losslessHead(30, 20)
	later[12] |= 0x20 // another version
	for name, c := range map[string]struct {
		data    []byte
		message string
	}{
		"magic bytes only":                     {[]byte("RIFF\x0c\x00\x00\x00WEBP"), "damaged"},
		"a size below zero chunks":             {[]byte("RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00"), "damaged"},
		"no image":                             {riffFile(extended(0, 30, 20)), "damaged"},
		"another first chunk":                  {riffFile(webpChunk("EXIF", nil), lossyHead(30, 20)), "damaged"},
		"a chunk beyond the form":              {joined([]byte("RIFF\x10\x00\x00\x00WEBP"), lossyHead(30, 20)), "damaged"},
		"a form beyond the file":               {riffFile(lossyHead(30, 20))[:28], "end is missing"},
		"a form far beyond the file":           {joined([]byte("RIFF\xff\xff\xff\xffWEBP"), lossyHead(30, 20)), "end is missing"},
		"a chunk of 4 GiB":                     {joined([]byte("RIFF\xff\xff\xff\xffWEBPVP8 \xe0\xff\xff\xff"), lossyHead(30, 20)[8:]), "end is missing"},
		"no width":                             {riffFile(lossyHead(0, 20)), "damaged"},
		"no key frame":                         {riffFile(video), "damaged"},
		"another version":                      {riffFile(later), "damaged"},
		"no start code":                        {riffFile(webpChunk("VP8 ", make([]byte, 20))), "damaged"},
		"no signature":                         {riffFile(webpChunk("VP8L", make([]byte, 20))), "damaged"},
		"a short image":                        {riffFile(webpChunk("VP8 ", make([]byte, 9))), "damaged"},
		"a canvas of another size":             {riffFile(extended(0, 31, 20), lossyHead(30, 20)), "damaged"},
		"a long header":                        {riffFile(webpChunk("VP8X", make([]byte, 12)), lossyHead(1, 1)), "damaged"},
		"a still image in an animation":        {anim(lossyHead(30, 20)), "damaged"},
		"frames before their header":           {riffFile(extended(flagAnimation, 30, 20), frameWebP(all, 0, 0, lossyHead(30, 20)), animHead(0)), "damaged"},
		"a long animation header":              {riffFile(extended(flagAnimation, 30, 20), webpChunk("ANIM", make([]byte, 8))), "damaged"},
		"no frame":                             {anim(), "damaged"},
		"a short frame":                        {anim(webpChunk("ANMF", make([]byte, 20))), "damaged"},
		"a frame without an image":             {anim(frameWebP(all, 0, 0, webpChunk("ALPH", []byte{0}))), "damaged"},
		"a frame of something else":            {anim(frameWebP(all, 0, 0, webpChunk("what", nil), lossyHead(30, 20))), "damaged"},
		"a frame whose image is larger":        {anim(frameWebP(all, 0, 0, lossyHead(31, 20))), "damaged"},
		"a frame whose image is cut off":       {anim(frameWebP(all, 0, 0, lossyHead(30, 20)[:16])), "damaged"},
		"a frame of lossless with other alpha": {anim(frameWebP(all, 0, 0, webpChunk("ALPH", []byte{0}), losslessHead(30, 20))), "damaged"},
		"a frame without its padding":          {anim(frameWebP(all, 0, 0, webpChunk("VP8 ", append(lossyHead(30, 20)[8:], 0))[:19])), "damaged"},
		"a frame outside the canvas":           {anim(frameWebP(all.Add(image.Pt(2, 0)), 0, 0, lossyHead(30, 20))), "a frame is larger than the image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRefusal(t, c.data, "webp", c.message)
		})
	}
}

func TestLimitsOfWebP(t *testing.T) {
	t.Parallel()
	anim, still := flatAnimation(3, 10, 10), riffFile(lossyHead(30, 20))
	large := func(id string, size int) []byte {
		return riffFile(extended(0, 30, 20), lossyHead(30, 20), webpChunk(id, make([]byte, size)))
	}
	const many = "a chunk of the WebP image that holds no pixels is larger than 100 bytes"
	for _, c := range []struct {
		name string
		data []byte
		opts imaging.Options
		want string
	}{
		{"pixels at the limit", still, imaging.Options{MaxPixels: 600}, ""},
		{"pixels over it", still, imaging.Options{MaxPixels: 599}, "the image has 600 pixels, at most 599 are allowed"},
		{"side at the limit", still, imaging.Options{MaxSide: 30}, ""},
		{"side over it", still, imaging.Options{MaxSide: 29}, "the image has a side of 30 pixels, at most 29 are allowed"},
		{"the largest", riffFile(lossyHead(16383, 3000)), imaging.Options{}, ""},
		{
			"canvas over the limit", riffFile(extended(flagAnimation, 1<<24, 1<<24), animHead(0), frameWebP(image.Rect(0, 0, 2, 2), 0, 0, lossyHead(2, 2))),
			imaging.Options{},
			"the image has 281,474,976,710,656 pixels, at most 50,000,000 are allowed",
		},
		{"frames at the limit", anim, imaging.Options{MaxFrames: 3}, ""},
		{"frames over it", anim, imaging.Options{MaxFrames: 2}, "the animation has more than the 2 frames allowed"},
		{"frame pixels at the limit", anim, imaging.Options{MaxFramePixels: 300}, ""},
		{"frame pixels over it", anim, imaging.Options{MaxFramePixels: 299}, "the frames of the animation have more than the 299 pixels allowed in all"},
		{"EXIF at the limit", large("EXIF", 100), imaging.Options{MaxChunk: 100}, ""},
		{"EXIF over it", large("EXIF", 101), imaging.Options{MaxChunk: 100}, many},
		{"XMP over it", large("XMP ", 101), imaging.Options{MaxChunk: 100}, many},
		{"a profile over it", large("ICCP", 101), imaging.Options{MaxChunk: 100}, many},
		{"an unknown chunk over it", large("what", 101), imaging.Options{MaxChunk: 100}, many},
		{"pixels are not counted", large("VP8 ", 101), imaging.Options{MaxChunk: 100}, ""},
		{"nor is alpha", large("ALPH", 101), imaging.Options{MaxChunk: 100}, ""},
		{"100,000 chunks", riffFile(extended(0, 30, 20), lossyHead(30, 20), bytes.Repeat(webpChunk("what", nil), 99_998)), imaging.Options{}, ""},
		{"a chunk more", riffFile(extended(0, 30, 20), lossyHead(30, 20), bytes.Repeat(webpChunk("what", nil), 99_999)), imaging.Options{}, "the WebP image has too many chunks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectLimit(t, c.data, "webp", c.opts, c.want)
		})
	}
}

func TestReaderFailuresOfWebP(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	data := drawWebP(t, shaded(40, 40), webp.Options{})
	info, err := check(data, "webp", imaging.Options{})
	imagingtest.Must(t, err)
	for _, r := range []io.ReadSeeker{
		brokenReader{Reader: iotest.ErrReader(cause)},
		brokenReader{Reader: bytes.NewReader(data), seekErr: cause},
	} {
		if _, err := imaging.Decode(r, info); verdictOf(err) != failed || !errors.Is(err, cause) {
			t.Errorf("decoding: %v", err)
		}
	}
}

func TestOptionalExtensions(t *testing.T) {
	t.Parallel()
	for _, ext := range imaging.OptionalExtensions() {
		if strings.Contains(strings.Join(imaging.Extensions(), " "), ext) {
			t.Errorf(".%s is always accepted", ext)
		}
	}
}

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

// bits writes the fields of a lossless bit stream (RFC 9649, section 3.3), lowest bit first.
type bits struct {
	data []byte
	used int // bits of the last byte
}

func (b *bits) put(value, n int) {
	for i := range n {
		if b.used%8 == 0 {
			b.data = append(b.data, 0)
			b.used = 0
		}
		b.data[len(b.data)-1] |= byte(value >> i & 1 << b.used)
		b.used++
	}
}

// code writes a prefix code, highest bit first.
func (b *bits) code(value, n int) {
	for i := n - 1; i >= 0; i-- {
		b.put(value>>i, 1)
	}
}

// full writes a prefix code of all symbols of an alphabet, with lengths that differ by at most one
// (RFC 9649, section 3.7.2.1.2). The shorter ones are first.
func (b *bits) full(symbols int) {
	length := 0
	for 2<<length <= symbols {
		length++
	}
	long := 2 * (symbols - 1<<length) // of length+1
	lengths := map[int]int{16: 1, length: 1}
	codes := map[int][2]int{length: {0, 1}, 16: {1, 1}} // of lengths, 16 repeats the last
	if long > 0 {
		lengths = map[int]int{16: 1, length: 2, length + 1: 2}
		codes = map[int][2]int{16: {0, 1}, length: {2, 2}, length + 1: {3, 2}}
	}
	b.put(0, 1)
	b.put(12, 4) // 16 lengths follow
	for _, symbol := range []int{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12} {
		b.put(lengths[symbol], 3)
	}
	b.put(0, 1)
	run := func(value, count int) {
		b.code(codes[value][0], codes[value][1])
		for left := count - 1; left > 0; {
			n := min(left, 6)
			if left == 7 || left == 8 {
				n = left - 3
			}
			b.code(codes[16][0], codes[16][1])
			b.put(n-3, 2)
			left -= n
		}
	}
	run(length, symbols-long)
	if long > 0 {
		run(length+1, long)
	}
}

// single writes a prefix code of one symbol, 0.
func (b *bits) single() {
	b.put(1, 1)
	b.put(0, 3)
}

// manyCodes returns a lossless image of 208 x 208 pixels with n groups of the largest prefix
// codes, and no pixels.
func manyCodes(n int) []byte {
	const side, tiles = 208, 52
	var b bits
	b.put(0x2F, 8)
	b.put(side-1, 14)
	b.put(side-1, 14)
	b.put(0, 4+1)     // no alpha, version 0, no transform
	b.put(1|11<<1, 5) // colour cache of 2,048 entries
	b.put(1, 1+3)     // an entropy image for tiles of 4 x 4 pixels
	b.put(0, 1)       // without a colour cache
	b.full(280)
	b.full(256)
	for range 3 {
		b.single()
	}
	for i := range tiles * tiles {
		group := min(i, n-1)
		if green := group & 255; green < 232 {
			b.code(green, 8)
		} else {
			b.code(2*232+green-232, 9)
		}
		b.code(group>>8, 8)
	}
	for range n {
		b.full(280 + 2048)
		for range 3 {
			b.full(256)
		}
		b.full(40)
	}
	return riffFile(webpChunk("VP8L", b.data))
}

// TestWebPPrefixCodes: a decoder holds all prefix codes of an image at once. The test is not
// parallel, because it reads counters of the process.
func TestWebPPrefixCodes(t *testing.T) {
	for _, n := range []int{1, 2600, 2601} {
		file := manyCodes(n)
		info, err := check(file, "webp", imaging.Options{})
		imagingtest.Must(t, err)
		memory := allocated(func() { _, err = imaging.Decode(bytes.NewReader(file), info) })
		imagingtest.Equal(t, verdictOf(err), refused, n, "groups: got", err)
		// The lengths of each code take the same memory again, but only for a moment.
		if memory > 300<<20 || n > 2600 && memory > 1<<20 {
			t.Errorf("%d groups: allocated %d bytes", n, memory)
		}
		t.Logf("%d groups, %d bytes: %v, %d MiB", n, len(file), err, memory>>20)
	}
}

// expectSimilar fails the test unless the samples of two images differ by at most most.
func expectSimilar(t *testing.T, got, want image.Image, most int) {
	t.Helper()
	if got.Bounds() != want.Bounds() {
		t.Fatalf("got %v, want %v", got.Bounds(), want.Bounds())
	}
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			a, b := color.NRGBAModel.Convert(got.At(x, y)).(color.NRGBA), color.NRGBAModel.Convert(want.At(x, y)).(color.NRGBA)
			for i, v := range []uint8{a.R, a.G, a.B, a.A} {
				if d := int(v) - int([]uint8{b.R, b.G, b.B, b.A}[i]); max(d, -d) > most {
					t.Fatalf("at %d, %d: got %v, want %v", x, y, a, b)
				}
			}
		}
	}
}

func TestDecodeStillWebP(t *testing.T) {
	t.Parallel()
	best := webp.Options{Quality: 100}
	for name, c := range map[string]struct {
		img    image.Image
		opts   webp.Options
		most   int
		planes bool
	}{
		"lossy":                    {opaque(64, 48), best, 3, true},
		"lossy with odd sides":     {opaque(33, 17), best, 6, true},
		"lossy with alpha":         {shaded(64, 48), best, 3, false},
		"alpha with odd sides":     {shaded(33, 17), best, 6, false},
		"lossless":                 {opaque(33, 17), webp.Options{Lossless: true}, 0, false},
		"lossless with alpha":      {shaded(33, 17), webp.Options{Lossless: true}, 0, false},
		"lossy with a profile":     {opaque(64, 48), webp.Options{Quality: 100, Profile: profile("RGB ", 200)}, 3, true},
		"black, white and between": {grey(256, 16), best, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decodedWebP(t, drawWebP(t, c.img, c.opts))
			planes, ok := got.(*image.YCbCr)
			if ok != c.planes || ok && planes.SubsampleRatio != image.YCbCrSubsampleRatio420 {
				t.Errorf("got a %T", got)
			}
			expectSimilar(t, got, c.img, c.most)
		})
	}
}

// grey returns an image of all greys, from left to right.
func grey(width, height int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		v := byte(i % width * 255 / (width - 1))
		copy(img.Pix[4*i:], []byte{v, v, v, 255})
	}
	return img
}

// solid returns the chunks of an image of one colour, 4 pixels high.
func solid(t *testing.T, width int, c color.NRGBA) []byte {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, 4))
	draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return bitstream(drawWebP(t, img, webp.Options{Lossless: true}))
}

// TestWebPCanvases: the expected pixels follow from the formulas of the container specification.
func TestWebPCanvases(t *testing.T) {
	t.Parallel()
	red, green, clear := color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 255, 0, 255}, color.NRGBA{}
	half, quarter := color.NRGBA{0, 0, 255, 128}, color.NRGBA{255, 255, 255, 64}
	left, right, all := image.Rect(0, 0, 4, 4), image.Rect(4, 0, 8, 4), image.Rect(0, 0, 8, 4)
	const dispose, replace = 1, 2
	file := riffFile(
		extended(flagAnimation|flagAlpha, 8, 4), animHead(7),
		frameWebP(left, 10, 0, solid(t, 4, red)),
		frameWebP(right, 20, dispose, solid(t, 4, green)),
		frameWebP(all, 0, 0, solid(t, 8, half)),
		frameWebP(left, 1<<24-1, 0, solid(t, 4, quarter)),
		frameWebP(right, 50, replace, solid(t, 4, quarter)),
		frameWebP(all, 60, 0, solid(t, 8, clear)),
		frameWebP(left, 70, replace, solid(t, 4, clear)),
	)
	want := []struct {
		left, right color.NRGBA
		shown       int64 // milliseconds
	}{
		{red, clear, 10},
		{red, green, 20},
		{color.NRGBA{127, 0, 128, 255}, half, 0},
		{color.NRGBA{159, 64, 160, 255}, half, 1<<24 - 1},
		{color.NRGBA{159, 64, 160, 255}, quarter, 50},
		{color.NRGBA{159, 64, 160, 255}, quarter, 60},
		{clear, quarter, 70},
	}
	info, err := check(file, "webp", imaging.Options{})
	if err != nil || !info.Animated || info.Loops != 7 {
		t.Fatalf("got %+v, %v", info, err)
	}
	n := 0
	for canvas, err := range imaging.WebPCanvases(bytes.NewReader(file), info) {
		imagingtest.Must(t, err)
		l, r := canvas.Image.NRGBAAt(1, 1), canvas.Image.NRGBAAt(7, 3)
		if w := want[n]; l != w.left || r != w.right || canvas.Shown.Milliseconds() != w.shown {
			t.Errorf("frame %d: got %v, %v, %v, want %v", n, l, r, canvas.Shown, w)
		}
		n++
	}
	imagingtest.Equal(t, n, len(want), "frames")
	if first := decodedWebP(t, file); first.At(1, 1) != red || first.At(7, 3) != clear {
		t.Errorf("Decode returned %v, %v", first.At(1, 1), first.At(7, 3))
	}
}

func TestWebPCanvasesEndEarly(t *testing.T) {
	t.Parallel()
	all := image.Rect(0, 0, 8, 4)
	file := riffFile(extended(flagAnimation, 8, 4), animHead(0),
		frameWebP(all, 10, 0, solid(t, 8, color.NRGBA{1, 2, 3, 255})), frameWebP(all, 10, 0, lossyHead(8, 4)))
	info, err := check(file, "webp", imaging.Options{})
	imagingtest.Must(t, err)
	var errs []error
	for _, err := range imaging.WebPCanvases(bytes.NewReader(file), info) {
		errs = append(errs, err)
	}
	if len(errs) != 2 || errs[0] != nil || verdictOf(errs[1]) != refused {
		t.Errorf("got %v", errs)
	}
	for canvas, err := range imaging.WebPCanvases(bytes.NewReader(file), info) {
		if err != nil || canvas.Image == nil {
			t.Errorf("got %v", err)
		}
		break
	}
}

func TestDamagedWebPIsRefused(t *testing.T) {
	t.Parallel()
	lossy, exact := drawWebP(t, shaded(64, 64), webp.Options{}), drawWebP(t, shaded(64, 64), webp.Options{Lossless: true})
	for name, file := range map[string][]byte{
		"no pixels":               riffFile(lossyHead(64, 64)),
		"no lossless pixels":      riffFile(losslessHead(64, 64)),
		"no alpha":                riffFile(extended(flagAlpha, 64, 64), webpChunk("ALPH", nil), bitstream(drawWebP(t, opaque(64, 64), webp.Options{}))),
		"lossy and half a file":   riffFile(extended(flagAlpha, 64, 64), webpChunk("VP8 ", lossy[bytes.Index(lossy, []byte("VP8 "))+8:len(lossy)*3/4])),
		"lossless, half a file":   riffFile(webpChunk("VP8L", exact[20:len(exact)/2])),
		"too many coefficients":   riffFile(webpChunk("VP8 ", append(lossyHead(64, 64)[8:], make([]byte, 17<<20)...))),
		"an animation, no pixels": flatAnimation(2, 30, 20),
	} {
		info, err := check(file, "webp", imaging.Options{})
		imagingtest.Must(t, err, name)
		if _, err := imaging.Decode(bytes.NewReader(file), info); verdictOf(err) != refused {
			t.Errorf("%s: got %v (%s)", name, err, verdictOf(err))
		}
	}
}

// TestWebPBombs: an image without pixels costs at most the memory of its canvas. The test is not
// parallel, because it reads counters of the process.
func TestWebPBombs(t *testing.T) {
	for name, c := range map[string]struct {
		file []byte
		most uint64 // bytes
	}{
		"lossy":     {riffFile(lossyHead(7000, 7000)), 80 << 20},
		"lossless":  {riffFile(losslessHead(7000, 7000)), 1 << 20},
		"alpha":     {riffFile(extended(flagAlpha, 7000, 7000), webpChunk("ALPH", []byte{1, 0x2F}), lossyHead(7000, 7000)), 1 << 20},
		"animation": {flatAnimation(1000, 400, 400), 2 << 20},
	} {
		memory := allocated(func() {
			info, err := check(c.file, "webp", imaging.Options{})
			imagingtest.Must(t, err, name)
			_, err = imaging.Decode(bytes.NewReader(c.file), info)
			imagingtest.Equal(t, verdictOf(err), refused, name, err)
		})
		if memory > c.most {
			t.Errorf("%s: allocated %d bytes", name, memory)
		}
	}
}

// TestUnusedAlpha: a lossless image whose header says that it has no alpha is opaque, whatever its
// pixels say.
func TestUnusedAlpha(t *testing.T) {
	t.Parallel()
	file := drawWebP(t, shaded(33, 17), webp.Options{Lossless: true})
	file[bytes.Index(file, []byte("VP8L"))+12] &^= 0x10 // the flag is bit 28 of the header
	frame := frameWebP(image.Rect(0, 0, 33, 17), 100, 0, bitstream(file))
	for name, data := range map[string][]byte{
		"still": file, "animation": riffFile(extended(flagAnimation|flagAlpha, 33, 17), animHead(0), frame, frame),
	} {
		info, err := check(data, "webp", imaging.Options{})
		imagingtest.Must(t, err, name)
		img, err := imaging.Decode(bytes.NewReader(data), info)
		imagingtest.Must(t, err, name)
		pixels := img.(*image.NRGBA)
		imagingtest.Same(t, pixels.Pix, opaque(33, 17).Pix, name)
	}
}
