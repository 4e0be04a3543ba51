package imaging_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// blocks are the coded blocks of a flat component in the standard Huffman tables of luma, as text
// of bits: no difference of the first coefficient, and the end of the block.
func blocks(n int) string { return strings.Repeat("00"+"1010", n) }

// packed returns bits as bytes, with ones behind them.
func packed(bits string) (b []byte) {
	bits += "1111111"
	for ; len(bits) >= 8; bits = bits[8:] {
		n := 0
		for _, bit := range bits[:8] {
			n = 2*n + int(bit-'0')
		}
		b = append(b, byte(n))
	}
	return b
}

// part is a component of a JPEG.
type part struct{ name, sampling, table byte }

// frameOf returns the header of a frame of 8 x 8 pixels.
func frameOf(sof byte, parts ...part) []byte {
	b := append(make([]byte, 0, 18), 8, 0, 8, 0, 8, byte(len(parts)))
	for _, p := range parts {
		b = append(b, p.name, p.sampling, p.table)
	}
	return segment(sof, b)
}

// scanOf returns a scan of flat components.
func scanOf(parts ...part) []byte {
	header, n := []byte{byte(len(parts))}, 0
	for _, p := range parts {
		header = append(header, p.name, 0)
		n += int(p.sampling>>4) * int(p.sampling&15)
	}
	return append(segment(0xDA, append(header, 0, 63, 0)), packed(blocks(n))...)
}

// flat returns a JPEG of flat components without Huffman tables.
func flat(parts ...part) []byte {
	return joined([]byte{0xFF, 0xD8}, quantTable(0), frameOf(0xC0, parts...), scanOf(parts...), []byte{0xFF, 0xD9})
}

// expectPixels expects a file whose pixels are those of another one.
func expectPixels(t *testing.T, data []byte, ext string, want any) {
	t.Helper()
	info, err := check(data, ext, imaging.Options{})
	imagingtest.Must(t, err)
	got, err := decodeFully(data, info)
	if err != nil || !samePixels(got, want) {
		t.Errorf("the pixels differ: %v", err)
	}
}

func samePixels(got, want any) bool {
	a, one := got.(image.Image)
	b, other := want.(image.Image)
	if !one || !other || a.Bounds() != b.Bounds() {
		return false
	}
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			if color.NRGBAModel.Convert(a.At(x, y)) != color.NRGBAModel.Convert(b.At(x, y)) {
				return false
			}
		}
	}
	return true
}

// TestDecoderOfJPEG: Go's decoder sees what other decoders assume.
func TestDecoderOfJPEG(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 40, 30)
	whole := pixels(t, jpg, "jpg")
	tables := bytes.Index(jpg, []byte{0xFF, 0xC4})
	size := 2 + int(jpg[tables+2])<<8 + int(jpg[tables+3])
	bare := joined(jpg[:tables], jpg[tables+size:])
	frame, scan := bytes.Index(bare, []byte{0xFF, 0xC0}), bytes.Index(bare, []byte{0xFF, 0xDA})
	renamed := bytes.Clone(bare)
	for i := range 3 {
		renamed[frame+10+3*i], renamed[scan+5+2*i] = 7, 7
	}
	cmyk := []part{{1, 0x11, 0}, {2, 0x11, 0}, {3, 0x11, 0}, {4, 0x11, 0}}
	inked := image.NewCMYK(image.Rect(0, 0, 8, 8))
	for i := range inked.Pix {
		inked.Pix[i] = 127
	}
	for name, c := range map[string]struct {
		data []byte
		want any
	}{
		"no Huffman tables":                  {bare, whole},
		"no Huffman tables, with metadata":   {withSegments(bare, exifSegment(turned(1))), whole},
		"components of one name":             {renamed, whole},
		"number of lines":                    {beforeEnd(jpg, 2, segment(0xDC, []byte{0, 30})), whole},
		"comment of no length":               {withSegments(jpg, []byte{0xFF, 0xFE, 0, 0}), whole},
		"metadata of a short length":         {withSegments(jpg, []byte{0xFF, 0xE1, 0, 1}), whole},
		"CMYK without Adobe's segment":       {flat(cmyk...), inked},
		"CMYK with a short segment of Adobe": {withSegments(flat(cmyk...), textSegment(0xEE, "Adobe")), inked},
		"CMYK with Adobe's segment": {
			withSegments(flat(cmyk...), textSegment(0xEE, "Adobe\x00\x64\x00\x00\x00\x00\x00")), inked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectPixels(t, c.data, "jpg", c.want)
			_, stripped := strip(t, c.data, "jpg")
			expectPixels(t, stripped, "jpg", c.want)
		})
	}
}

// TestQuantizationTables: the table of a component precedes its first scan.
func TestQuantizationTables(t *testing.T) {
	t.Parallel()
	y, cb, cr := part{1, 0x11, 0}, part{2, 0x11, 1}, part{3, 0x11, 1}
	soi, eoi, luma, chroma := []byte{0xFF, 0xD8}, []byte{0xFF, 0xD9}, quantTable(0), quantTable(1)
	frame, scan := frameOf(0xC0, y, cb, cr), scanOf(y, cb, cr)
	progressive := frameOf(0xC2, y, cb, cr)
	dc := segment(0xDA, []byte{3, 1, 0, 2, 0, 3, 0, 0, 0, 0})
	ac := segment(0xDA, []byte{1, 1, 0, 1, 63, 0})
	wide := segment(0xDB, append([]byte{0x10}, bytes.Repeat([]byte{0, 1}, 64)...))
	both := segment(0xDB, joined(luma[4:], chroma[4:]))
	for name, c := range map[string]struct {
		parts [][]byte
		want  verdict
	}{
		"before the frame":                   {[][]byte{luma, chroma, frame, scan}, passes},
		"behind the frame":                   {[][]byte{frame, chroma, luma, scan}, passes},
		"in one segment":                     {[][]byte{both, frame, scan}, passes},
		"of two bytes":                       {[][]byte{wide, chroma, frame, scan}, passes},
		"of zeros":                           {[][]byte{segment(0xDB, make([]byte, 65)), chroma, frame, scan}, passes},
		"each before its own scan":           {[][]byte{frame, luma, scanOf(y), chroma, scanOf(cb), scanOf(cr)}, passes},
		"none":                               {[][]byte{frame, scan}, refused},
		"no luma":                            {[][]byte{chroma, frame, scan}, refused},
		"no chroma":                          {[][]byte{luma, frame, scan}, refused},
		"another number":                     {[][]byte{luma, chroma, frameOf(0xC0, y, cb, part{3, 0x11, 3}), scan}, refused},
		"grey":                               {[][]byte{chroma, frameOf(0xC0, y), scanOf(y)}, refused},
		"cut off":                            {[][]byte{segment(0xDB, luma[4:60]), chroma, frame, scan}, refused},
		"behind the scan":                    {[][]byte{frame, scan, luma, chroma}, refused},
		"behind the scan of a component":     {[][]byte{frame, luma, scanOf(y), scanOf(cb), scanOf(cr), chroma}, refused},
		"progressive":                        {[][]byte{luma, chroma, progressive, dc, ac}, passes},
		"progressive, none":                  {[][]byte{progressive, dc, ac}, refused},
		"progressive, behind the first scan": {[][]byte{progressive, dc, luma, chroma, ac}, refused},
		"progressive, behind the last scan":  {[][]byte{progressive, dc, ac, luma, chroma}, refused},
		"progressive, details first":         {[][]byte{progressive, chroma, ac, luma, dc}, refused},
	} {
		_, err := check(joined(soi, joined(c.parts...), eoi), "jpg", imaging.Options{})
		if verdictOf(err) != c.want || err != nil && !strings.Contains(err.Error(), "damaged: a quantization table is missing") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestLateQuantizationTables: a table that is defined again behind the first scan of all components
// has no effect, as in libjpeg.
func TestLateQuantizationTables(t *testing.T) {
	t.Parallel()
	y := part{1, 0x11, 0}
	tables := drawJPEG(t, 8, 8)
	tables = tables[bytes.Index(tables, []byte{0xFF, 0xC4}):]
	tables = tables[:2+int(tables[2])<<8+int(tables[3])]
	light := joined(segment(0xDA, []byte{1, 1, 0, 0, 0, 0}), packed("100"+"101")) // a first coefficient of 5
	refined := joined(segment(0xDA, []byte{1, 1, 0, 1, 63, 0}), packed("1010"))
	late := segment(0xDB, append([]byte{0}, bytes.Repeat([]byte{99}, 64)...))
	file := func(parts ...[]byte) []byte {
		return joined([]byte{0xFF, 0xD8}, quantTable(0), tables, frameOf(0xC2, y), joined(parts...), []byte{0xFF, 0xD9})
	}
	expectPixels(t, file(light, late, refined), "jpg", pixels(t, file(light, refined), "jpg"))
	expectPixels(t, file(light, refined, late), "jpg", pixels(t, file(light, refined), "jpg"))
}

// TestRestartsOfOneColor: Go's decoder miscounts restart markers in a scan of one component.
func TestRestartsOfOneColor(t *testing.T) {
	t.Parallel()
	y, cb, cr := part{1, 0x22, 0}, part{2, 0x11, 0}, part{3, 0x11, 0}
	luma := joined(segment(0xDA, []byte{1, 1, 0, 0, 63, 0}), packed(blocks(2)), []byte{0xFF, 0xD0}, packed(blocks(2)))
	frame := frameOf(0xC0, y, cb, cr)
	frame[6], frame[8] = 16, 16
	data := joined([]byte{0xFF, 0xD8}, quantTable(0), frame, segment(0xDD, []byte{0, 2}), luma,
		segment(0xDD, []byte{0, 0}), scanOf(cb), scanOf(cr), []byte{0xFF, 0xD9})
	info, err := check(data, "jpg", imaging.Options{})
	imagingtest.Must(t, err)
	if _, err := decodeFully(data, info); verdictOf(err) != refused || !strings.Contains(err.Error(), "restart markers in a scan of one colour") {
		t.Error(err)
	}
}

// TestUnusualJPEG: an image that no decoder of Go knows is not called damaged.
func TestUnusualJPEG(t *testing.T) {
	t.Parallel()
	y, cb, cr := part{1, 0x13, 0}, part{2, 0x11, 0}, part{3, 0x11, 0}
	frame := func(sof byte, parts ...part) []byte {
		return joined([]byte{0xFF, 0xD8}, quantTable(0), frameOf(sof, parts...), scanOf(parts...), []byte{0xFF, 0xD9})
	}
	deep := frame(0xC1, part{1, 0x11, 0})
	deep[bytes.Index(deep, []byte{0xFF, 0xC1})+4] = 12
	for message, data := range map[string][]byte{
		"an unusual sampling of its colours": frame(0xC0, y, cb, cr),
		"lossless coding":                    frame(0xC3, cb),
		"arithmetic coding":                  frame(0xC9, cb),
		"hierarchical coding":                frame(0xC5, cb),
		"12 bits for a sample":               deep,
		"an unusual number of colours":       frame(0xC0, cb, cr),
	} {
		expectRefusal(t, data, "jpg", "the JPEG image has "+message+": save it again as an ordinary JPEG")
	}
}

// TestDecoderOfPNG: Go's decoder sees only the chunks that it needs.
func TestDecoderOfPNG(t *testing.T) {
	t.Parallel()
	wrong := func(kind string, size int) []byte {
		b := chunk(kind, make([]byte, size))
		b[len(b)-1] ^= 1
		return b
	}
	header := func(colorType byte) []byte {
		return chunk("IHDR", []byte{0, 0, 0, 2, 0, 0, 0, 1, 8, colorType, 0, 0, 0})
	}
	file := func(colorType byte, row string, chunks ...[]byte) []byte {
		return joined([]byte(pngSignature), header(colorType), joined(chunks...),
			chunk("IDAT", deflated([]byte("\x00"+row))), chunk("IEND", nil))
	}
	colors := chunk("PLTE", []byte("abcdef"))
	alpha, grey, rgb, indexed := file(6, "abcdefgh"), file(0, "ab"), file(2, "abcdef"), file(3, "\x00\x01", colors)
	clear := file(3, "\x00\x01", colors, chunk("tRNS", []byte{0}))
	key := file(0, "ab", chunk("tRNS", []byte{0, 'a'}))
	type pair struct{ data, want []byte }
	cases := map[string]pair{
		"tRNS of RGBA":             {withChunks(alpha, chunk("tRNS", make([]byte, 6))), alpha},
		"tRNS of RGBA, late":       {beforeEnd(alpha, 12, chunk("tRNS", make([]byte, 6))), alpha},
		"tRNS of grey, long":       {withChunks(grey, chunk("tRNS", make([]byte, 6))), grey},
		"tRNS of grey, late":       {beforeEnd(grey, 12, chunk("tRNS", []byte{0, 'a'})), grey},
		"tRNS of RGB, short":       {withChunks(rgb, chunk("tRNS", make([]byte, 2))), rgb},
		"tRNS before the palette":  {withChunks(indexed, chunk("tRNS", []byte{0})), indexed},
		"second tRNS":              {file(3, "\x00\x01", colors, chunk("tRNS", []byte{0}), chunk("tRNS", []byte{9})), clear},
		"tRNS behind a wrong one":  {file(0, "ab", wrong("tRNS", 2), chunk("tRNS", []byte{0, 'a'})), key},
		"suggested colours":        {withChunks(rgb, colors), rgb},
		"suggested colours, grey":  {withChunks(grey, colors), grey},
		"suggested colours, large": {withChunks(rgb, chunk("PLTE", make([]byte, 900))), rgb},
	}
	for _, kind := range []string{"tEXt", "gAMA", "pHYs", "tIME", "tRNS", "eXIf", "iCCP", "sRGB", "prVt"} {
		cases[kind+" of a wrong checksum"] = pair{withChunks(rgb, wrong(kind, 6)), rgb}
		cases[kind+" of a wrong checksum, of a palette"] = pair{withChunks(indexed, wrong(kind, 1)), indexed}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectPixels(t, c.data, "png", pixels(t, c.want, "png"))
			_, stripped := strip(t, c.data, "png")
			expectPixels(t, stripped, "png", pixels(t, c.want, "png"))
		})
	}
}

// sameFrames reports whether the frames have the same pixels.
func sameFrames(got, want *gif.GIF) bool {
	return slices.EqualFunc(got.Image, want.Image, func(a, b *image.Paletted) bool {
		return a.Rect == b.Rect && bytes.Equal(a.Pix, b.Pix)
	})
}

// TestDecoderOfGIF: the decoder knows what browsers show, and otherwise agrees with that of the
// standard library.
func TestDecoderOfGIF(t *testing.T) {
	t.Parallel()
	still, anim := drawGIF(t, 30, 20, 1), drawGIF(t, 30, 20, 3)
	frame := bytes.Index(still, []byte(",\x00\x00\x00\x00\x1e"))
	screen := func(data []byte, width, height byte) []byte {
		data = bytes.Clone(data)
		data[6], data[8] = width, height
		return data
	}
	extended := func(block string) []byte { return joined(still[:frame], []byte(block), still[frame:]) }
	for name, c := range map[string]struct {
		data, want []byte
		size       image.Point
	}{
		"still":                          {still, still, image.Pt(30, 20)},
		"animation":                      {anim, anim, image.Pt(30, 20)},
		"larger screen":                  {screen(still, 50, 60), still, image.Pt(50, 60)},
		"first frame beyond the screen":  {screen(still, 29, 10), still, image.Pt(30, 20)},
		"frames beyond the screen":       {screen(anim, 8, 8), anim, image.Pt(30, 20)},
		"no screen":                      {screen(still, 0, 0), still, image.Pt(30, 20)},
		"no trailer":                     {still[:len(still)-1], still, image.Pt(30, 20)},
		"zeros between blocks":           {extended("\x00\x00"), still, image.Pt(30, 20)},
		"zeros before the trailer":       {beforeEnd(still, 1, []byte{0, 0}), still, image.Pt(30, 20)},
		"unknown extension":              {extended("!\x99\x03abc\x00"), still, image.Pt(30, 20)},
		"unknown extension of no size":   {extended("!\x99\x00"), still, image.Pt(30, 20)},
		"application of no name":         {extended("!\xff\x00"), still, image.Pt(30, 20)},
		"text of another size":           {extended("!\x01\x03abc\x00"), still, image.Pt(30, 20)},
		"loop of no number":              {extended("!\xff\x0bNETSCAPE2.0\x00"), still, image.Pt(30, 20)},
		"data behind the pixels":         {joined(still[:len(still)-2], []byte("\x05PIXEL\x00;")), still, image.Pt(30, 20)},
		"much data behind the pixels":    {joined(still[:len(still)-2], bytes.Repeat([]byte("\x02ab"), 999), []byte("\x00;")), still, image.Pt(30, 20)},
		"interlaced":                     {interlacedGIF(still, frame), nil, image.Pt(30, 20)},
		"frame of no size":               {beforeEnd(still, 1, []byte(",\x00\x00\x00\x00\x00\x00\x00\x00\x80abcdef\x02\x00")), still, image.Pt(30, 20)},
		"transparent colour":             {extended("!\xf9\x04\x05\x07\x00\x03\x00"), nil, image.Pt(30, 20)},
		"transparent colour, no trailer": {extended("!\xf9\x04\x05\x07\x00\x03\x00")[:len(still)+7], extended("!\xf9\x04\x05\x07\x00\x03\x00"), image.Pt(30, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, err := check(c.data, "gif", imaging.Options{})
			if err != nil || image.Pt(info.Width, info.Height) != c.size {
				t.Fatalf("%dx%d, %v, want %v", info.Width, info.Height, err, c.size)
			}
			got, err := imaging.DecodeGIF(bytes.NewReader(c.data), info)
			imagingtest.Must(t, err)
			if c.want == nil {
				c.want = c.data
			}
			want, err := gif.DecodeAll(bytes.NewReader(c.want))
			if name == "frame of no size" {
				got.Image, got.Delay, got.Disposal = got.Image[:1], got.Delay[:1], got.Disposal[:1]
			}
			if err != nil || !sameFrames(got, want) || !slices.Equal(got.Delay, want.Delay) ||
				!slices.Equal(got.Disposal, want.Disposal) || got.LoopCount != want.LoopCount {
				t.Fatalf("the frames differ: %v", err)
			}
			for i, m := range want.Image {
				if !samePixels(got.Image[i], m) {
					t.Errorf("the colours of frame %d differ", i)
				}
			}
			_, stripped := strip(t, c.data, "gif")
			if again, err := check(stripped, "gif", imaging.Options{}); err != nil || again.Frames != info.Frames {
				t.Errorf("stripped: %d frames, %v", again.Frames, err)
			}
		})
	}
}

// interlacedGIF sets the flag of a frame.
func interlacedGIF(data []byte, frame int) []byte {
	data = bytes.Clone(data)
	data[frame+9] |= 0x40
	return data
}

func TestDamagedGIF(t *testing.T) {
	t.Parallel()
	pic := drawGIF(t, 4, 4, 1)
	frame := bytes.Index(pic, []byte(",\x00\x00\x00\x00\x04"))
	pixels := frame + 10 + 3<<(1+pic[frame+9]&7)
	for name, c := range map[string]struct {
		data    []byte
		message string
	}{
		"too few pixels":     {joined(pic[:frame+5], []byte{9}, pic[frame+6:]), "damaged: not all of it can be decoded"},
		"no pixels":          {joined(pic[:pixels+1], []byte("\x00;")), "damaged: not all of it can be decoded"},
		"code size of 1":     {joined(pic[:pixels], []byte{1}, pic[pixels+1:]), "damaged: not all of it can be decoded"},
		"control of 5 bytes": {joined(pic[:frame], []byte("!\xf9\x05\x00\x00\x00\x00\x00\x00"), pic[frame:]), "damaged: not all of it can be decoded"},
		"no colour table":    {joined(pic[:frame+9], []byte{0}, pic[pixels:]), "a frame without a colour table"},
	} {
		info, err := check(c.data, "gif", imaging.Options{})
		if err == nil {
			_, err = imaging.DecodeGIF(bytes.NewReader(c.data), info)
		}
		if verdictOf(err) != refused || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHiddenFrames: an extension hides no frames, whatever the size of its first block.
func TestHiddenFrames(t *testing.T) {
	t.Parallel()
	for _, extension := range []string{"\x01\x18", "\xff\x18", "\x99\x18"} {
		if info, err := check(hiddenFrame(extension), "gif", imaging.Options{}); err != nil || info.Frames != 1 {
			t.Errorf("%q: %d frames, %v", extension, info.Frames, err)
		}
	}
}
