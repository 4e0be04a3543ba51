package imaging_test

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

func TestCheckAVIFAndHEIC(t *testing.T) {
	t.Parallel()
	av1, hevc := bmffItem{"av01", "pixels", 30, 20, nil, false}, bmffItem{"hvc1", "pixels", 30, 20, nil, false}
	for _, c := range []struct {
		name, ext     string
		data          []byte
		width, height int
	}{
		{"turned.avif", "avif", fixture(t, "turned.avif"), 48, 64},
		{"grid.avif", "avif", fixture(t, "grid.avif"), 128, 64},
		{"sequence.avif", "avif", fixture(t, "sequence.avif"), 64, 48},
		{"photo.heic", "heic", fixture(t, "photo.heic"), 64, 64},
		{"thumbnail.heic", "heic", fixture(t, "thumbnail.heic"), 64, 64},
		{"one AV1 item", "avif", heif("avif", []bmffItem{av1}), 30, 20},
		{"one HEVC item", "heic", heif("heix", []bmffItem{hevc}), 30, 20},
		{"no brand of AVIF", "avif", heif("mif1", []bmffItem{av1}), 30, 20},
		{"no brand of HEIC", "heic", heif("msf1", []bmffItem{hevc}), 30, 20},
		{"identity", "avif", heif("avif", []bmffItem{{"iden", "x", 5, 6, []int{2}, false}, av1}), 5, 6},
		{"grid in the box", "heic", heif("heic", []bmffItem{{"grid", gridOf(2, 60, 20), 60, 20, []int{2, 2}, true}, hevc}), 60, 20},
		{"wide grid", "heic", heif("heic", []bmffItem{{"grid", "\x00\x01\x00\x00" + string(u32(60, 20)), 60, 20, []int{2}, false}, hevc}), 60, 20},
		{"unknown boxes", "avif", joined(heif("avif", []bmffItem{av1}, bmffBox("what", []byte("x"))), bmffBox("free"), bmffBox("else", []byte("x"))), 30, 20},
		{"data of a large size", "avif", largeData(heif("avif", []bmffItem{av1})), 30, 20},
		{"data up to the end", "avif", endless(heif("avif", []bmffItem{av1})), 30, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			want := imaging.Info{
				Format: imaging.Format(strings.ToUpper(c.ext)), Width: c.width, Height: c.height, Frames: 1,
				FramePixels: int64(c.width * c.height), Orientation: imaging.Upright, End: int64(len(c.data)),
			}
			got, err := check(c.data, c.ext, imaging.Options{})
			if err != nil || !reflect.DeepEqual(described(got), want) {
				t.Errorf("got %+v, %v; want %+v", described(got), err, want)
			}
			if got.Format.Decodable() || got.Format.HasVariant() {
				t.Error("it can be decoded")
			}
			if c.name == "data up to the end" {
				return
			}
			if got, err = check(append(bytes.Clone(c.data), "TRAILER of a phone"...), c.ext, imaging.Options{}); err != nil || got.End != want.End {
				t.Errorf("with a tail: end %d, %v", got.End, err)
			}
		})
	}
}

// largeData sets the size of the data, the last box, in 64 bits.
func largeData(file []byte) []byte {
	at := bytes.LastIndex(file, []byte("mdat")) - 4
	size := len(file) - at
	file = bytes.Replace(file, u32(at+8, 6), u32(at+16, 6), 1)
	return joined(file[:at], u32(1), []byte("mdat"), u32(0, size+8), file[at+8:])
}

// endless removes the size of the last box.
func endless(file []byte) []byte {
	at := bytes.LastIndex(file, []byte("mdat")) - 4
	return joined(file[:at], u32(0), file[at+4:])
}

// properties returns a box with properties of the first item, for a meta box. The first property is
// its size.
func properties(list ...[]byte) []byte {
	uses := append(make([]byte, 0, 1+len(list)), byte(len(list)))
	for i := range list {
		uses = append(uses, byte(2+i))
	}
	return bmffBox("iprp", bmffBox("ipco", list...), fullBox("ipma", 0, u32(1), u16(1), uses))
}

// aperture returns the property of the part of an image that is shown.
func aperture(numbers ...int) []byte { return bmffBox("clap", u32(numbers...), u32(0, 1, 0, 1)) }

// TestShownSize: the size of a HEIC is that in which the image itself is shown. The limit on pixels
// counts the whole image.
func TestShownSize(t *testing.T) {
	t.Parallel()
	hevc := bmffItem{"hvc1", "pixels", 452, 462, nil, false}
	turn, half, mirror := bmffBox("irot", []byte{1}), bmffBox("irot", []byte{2}), bmffBox("imir", []byte{1})
	identity := []bmffItem{{"iden", "", 0, 0, []int{2}, false}, hevc}
	again := []bmffItem{{"iden", "", 0, 0, []int{2}, false}, {"iden", "", 0, 0, []int{3}, false}, hevc}
	small := []bmffItem{{"hvc1", "pixels", 45, 46, nil, false}, hevc}
	for name, c := range map[string]struct {
		items         []bmffItem
		more          []byte
		width, height int
	}{
		"aperture":                  {[]bmffItem{hevc}, properties(aperture(451, 1, 461, 1)), 451, 461},
		"a fraction":                {[]bmffItem{hevc}, properties(aperture(901, 2, 921, 2)), 451, 461},
		"larger than the image":     {[]bmffItem{hevc}, properties(aperture(500, 1, 461, 1)), 452, 461},
		"of no denominator":         {[]bmffItem{hevc}, properties(aperture(451, 0, 461, 1)), 452, 462},
		"of nothing":                {[]bmffItem{hevc}, properties(aperture(0, 1, 461, 1)), 452, 462},
		"cropped, then turned":      {[]bmffItem{hevc}, properties(aperture(300, 1, 461, 1), turn), 461, 300},
		"turned, then cropped":      {[]bmffItem{hevc}, properties(turn, aperture(300, 1, 451, 1)), 300, 451},
		"turned twice":              {[]bmffItem{hevc}, properties(turn, turn), 452, 462},
		"on its head, and mirrored": {[]bmffItem{hevc}, properties(half, mirror), 452, 462},
		"identity":                  {identity, properties(turn), 462, 452},
		"identity of an identity":   {again, properties(aperture(300, 1, 300, 1)), 300, 300},
		"thumbnail as the primary":  {small, fullBox("iref", 0, bmffBox("thmb", u16(1, 1, 2))), 452, 462},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := heif("heic", c.items, c.more)
			info, err := check(file, "heic", imaging.Options{MaxPixels: 452 * 462, Strip: imaging.StripOn})
			if err != nil || info.Width != c.width || info.Height != c.height {
				t.Errorf("%d x %d, want %d x %d (%v)", info.Width, info.Height, c.width, c.height, err)
			}
			head, err := imaging.ReadHeader(bytes.NewReader(file), int64(len(file)), "heic", imaging.Options{})
			if err != nil || head.Width != c.width || head.Height != c.height {
				t.Errorf("the header: %d x %d (%v)", head.Width, head.Height, err)
			}
			expectLimit(t, file, "heic", imaging.Options{MaxPixels: 452*462 - 1}, "the image has 208,824 pixels, at most 208,823 are allowed")
		})
	}
}

// TestApertureOfAVIF: like browsers, the size of an AVIF ignores its aperture, but not its
// rotation.
func TestApertureOfAVIF(t *testing.T) {
	t.Parallel()
	file := heif("avif", []bmffItem{{"av01", "pixels", 12, 34, nil, false}}, properties(aperture(8, 1, 10, 1), bmffBox("irot", []byte{1})))
	info, err := check(file, "avif", imaging.Options{})
	if err != nil || info.Width != 34 || info.Height != 12 {
		t.Errorf("%d x %d (%v)", info.Width, info.Height, err)
	}
}

// TestUnsuitableHEIF: an image sequence without a still image, and the short form, are called so.
func TestUnsuitableHEIF(t *testing.T) {
	t.Parallel()
	sequence := func(brands string) []byte {
		return joined(bmffBox("ftyp", []byte(brands)), bmffBox("moov", bmffBox("mvhd")), bmffBox("mdat", []byte("x")))
	}
	withList := joined(bmffBox("ftyp", []byte("heic\x00\x00\x00\x00msf1")), fullBox("meta", 0, fullBox("hdlr", 0)), bmffBox("moov"))
	short := joined(bmffBox("ftyp", []byte("mif3avif")), bmffBox("mini", []byte("x")))
	const still = " is an image sequence without a still image: save it as a still image"
	for _, c := range []struct {
		ext  string
		data []byte
		want string
	}{
		{"heic", sequence("msf1\x00\x00\x00\x00msf1hevciso8"), "the HEIC" + still},
		{"heic", sequence("msf1\x00\x00\x00\x00"), "the HEIC" + still},
		{"heic", sequence("hevc\x00\x00\x00\x00hevc"), "the HEIC" + still},
		{"avif", sequence("avis\x00\x00\x00\x00avis"), "the AVIF" + still},
		{"heic", withList, "the HEIC" + still},
		{"heic", sequence("isom\x00\x00\x00\x00isommp42"), "content is MP4, the name says .heic"},
		{"avif", short, "the AVIF image has the short form of HEIF (mini): save it in the ordinary form"},
		{"heic", short, "content is AVIF, the name says .heic"},
		{"jpg", short, "content is AVIF, the name says .jpg"},
	} {
		if _, err := check(c.data, c.ext, imaging.Options{}); verdictOf(err) != refused || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestMismatchedAVIFAndHEIC(t *testing.T) {
	t.Parallel()
	av1, hevc := []bmffItem{{"av01", "pixels", 30, 20, nil, false}}, []bmffItem{{"hvc1", "pixels", 30, 20, nil, false}}
	for _, c := range []struct {
		ext  string
		data []byte
		want string
	}{
		{"avif", fixture(t, "photo.heic"), "content is HEIC, the name says .avif"},
		{"heic", fixture(t, "turned.avif"), "content is AVIF, the name says .heic"},
		{"heic", fixture(t, "sequence.avif"), "content is AVIF, the name says .heic"},
		{"heic", heif("mif1", av1), "content is AVIF, the name says .heic"},
		{"avif", heif("mif1", hevc), "content is HEIC, the name says .avif"},
		{"jpg", fixture(t, "photo.heic"), "content is HEIC, the name says .jpg"},
		{"jpg", fixture(t, "turned.avif"), "content is AVIF, the name says .jpg"},
		{"webp", heif("mif1", hevc), "content is HEIF, the name says .webp"},
		{"avif", drawPNG(t, 8, 8), "content is PNG, the name says .avif"},
		{"heic", riffFile(lossyHead(8, 8)), "content is WebP, the name says .heic"},
		{"avif", []byte("<!DOCTYPE html><script>alert(1)</script>"), "content is HTML, the name says .avif"},
		{"heic", bmffBox("ftyp", []byte("isom\x00\x00\x00\x00isommp42")), "content is MP4, the name says .heic"},
	} {
		if _, err := check(c.data, c.ext, imaging.Options{}); verdictOf(err) != refused || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestCheckAVIFRefuses(t *testing.T) {
	t.Parallel()
	one := func(kind, content string, width, height int, inputs ...int) []bmffItem {
		return []bmffItem{{kind, content, width, height, inputs, false}, {"av01", "pixels", 30, 20, nil, false}}
	}
	good := heif("avif", one("av01", "pixels", 30, 20))
	edited := func(old, now string) []byte {
		if bytes.Count(good, []byte(old)) != 1 {
			panic(old)
		}
		return bytes.Replace(good, []byte(old), []byte(now), 1)
	}
	twice := heif("avif", one("av01", "pixels", 30, 20), fullBox("iloc", 1, []byte{0x44, 0}, u16(1, 1, 0, 0, 1), u32(0, 1)))
	const unsupported = "uses a feature that is not supported"
	for name, c := range map[string]struct {
		data    []byte
		message string
	}{
		"nothing but a type":            {bmffBox("ftyp", []byte("avif\x00\x00\x00\x00avif")), "damaged"},
		"no list":                       {joined(good[:bytes.Index(good, []byte("meta"))-4], bmffBox("mdat", []byte("x"))), "damaged"},
		"two lists":                     {joined(good, fullBox("meta", 0)), "damaged"},
		"no primary image":              {edited("pitm\x00\x00\x00\x00\x00\x01", "pitm\x00\x00\x00\x00\x00\x09"), "damaged"},
		"no size":                       {heif("avif", one("av01", "pixels", 0, 0)), "damaged"},
		"no height":                     {heif("avif", one("av01", "pixels", 30, 0)), "damaged"},
		"no content":                    {heif("avif", one("av01", "", 30, 20)), "damaged"},
		"another codec":                 {heif("avif", one("avc1", "pixels", 30, 20)), unsupported},
		"an identity of itself":         {heif("avif", one("iden", "", 0, 0, 1)), "damaged"},
		"an identity of what is empty":  {heif("avif", one("iden", "", 30, 20, 7)), unsupported},
		"an overlay":                    {heif("avif", one("iovl", "x", 30, 20, 2)), unsupported},
		"a grid of nothing":             {heif("avif", one("grid", gridOf(1, 30, 20), 30, 20)), unsupported},
		"a grid of itself":              {heif("avif", one("grid", gridOf(1, 30, 20), 30, 20, 1)), unsupported},
		"a grid of what is missing":     {heif("avif", one("grid", gridOf(1, 30, 20), 30, 20, 7)), unsupported},
		"a grid of two codecs":          {heif("avif", append(one("grid", gridOf(2, 60, 20), 60, 20, 2, 3), bmffItem{"hvc1", "x", 30, 20, nil, false})), unsupported},
		"a grid of another size":        {heif("avif", one("grid", gridOf(1, 30, 21), 30, 20, 2)), "damaged"},
		"a grid of more tiles":          {heif("avif", one("grid", gridOf(2, 30, 20), 30, 20, 2)), "damaged"},
		"a short grid":                  {heif("avif", one("grid", "short", 30, 20, 2)), "damaged"},
		"content beyond the file":       {good[:len(good)-1], "end is missing"},
		"content where the file begins": {edited(string(u32(len(good)-12, 6)), string(u32(0, 6))), "damaged"},
		"content in the list":           {edited(string(u32(len(good)-12, 6)), string(u32(60, 6))), "damaged"},
		"content of a huge position":    {edited(string(u32(len(good)-12, 6)), "\xff\xff\xff\xff\xff\xff\xff\xff"), "end is missing"},
		"content in another file":       {edited(string(joined(u16(1, 0, 0, 1), u32(len(good)-12))), string(joined(u16(1, 0, 1, 1), u32(len(good)-12)))), unsupported},
		"content in another item":       {edited(string(joined(u16(1, 0, 0, 1), u32(len(good)-12))), string(joined(u16(1, 2, 0, 1), u32(len(good)-12)))), unsupported},
		"content beyond the box":        {edited(string(joined(u16(1, 0, 0, 1), u32(len(good)-12))), string(joined(u16(1, 1, 0, 1), u32(0)))), "damaged"},
		"two locations":                 {twice, "damaged"},
		"a box longer than the list":    {edited("pitm", "pit\xff"), "damaged"},
		"a list of old items":           {edited("infe\x02\x00\x00\x00\x00\x01", "infe\x01\x00\x00\x00\x00\x01"), "damaged"},
		"numbers of 15 bytes":           {edited("iloc\x01\x00\x00\x00\x44\x00", "iloc\x01\x00\x00\x00\xff\x00"), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectRefusal(t, c.data, "avif", c.message)
		})
	}
}

func TestLimitsOfAVIF(t *testing.T) {
	t.Parallel()
	one := bmffItem{"av01", "pixels", 30, 20, nil, false}
	still, large := heif("avif", []bmffItem{one}), heif("avif", []bmffItem{one, {"av01", "pixels", 40, 20, nil, false}})
	const many, boxes = "the image has too many items", "the AVIF image has too many boxes"
	parts := joined(bmffBox("ftyp", []byte("avif\x00\x00\x00\x00avif")), fullBox("meta", 0,
		fullBox("iloc", 0, []byte{0, 0}, u16(2, 1, 0, 65535, 2, 0, 65535))))
	huge := binary.BigEndian.AppendUint32(nil, 1<<32-1)
	uses := fullBox("meta", 0, bmffBox("iprp", fullBox("ipma", 0, huge, bytes.Repeat([]byte{0, 1, 1, 1}, 120_000))))
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
		{"another item over it", large, imaging.Options{MaxSide: 39}, "the image has a side of 40 pixels, at most 39 are allowed"},
		{"list at the limit", still, imaging.Options{MaxChunk: int64(bytes.Index(still, []byte("mdat")) - 4 - 24)}, ""},
		{"list over it", still, imaging.Options{MaxChunk: 200}, "the list of items of the AVIF image is larger than 200 bytes"},
		{"list of more than a megabyte", heif("avif", []bmffItem{one}, bmffBox("free", make([]byte, 1<<20))), imaging.Options{}, "the list of items of the AVIF image is larger than 1 MiB"},
		{"content in parts of nothing", parts, imaging.Options{}, many},
		{"boxes in the list", heif("avif", []bmffItem{one}, bytes.Repeat(bmffBox("free"), 110_000)), imaging.Options{}, many},
		{"uses of properties", joined(bmffBox("ftyp", []byte("avif\x00\x00\x00\x00avif")), uses), imaging.Options{}, many},
		{"100,000 boxes", joined(still, bytes.Repeat(bmffBox("free"), 99_997)), imaging.Options{}, ""},
		{"a million boxes", joined(still, bytes.Repeat(bmffBox("free"), 1_000_000)), imaging.Options{}, boxes},
		{"a million boxes in a sequence", joined(still, bmffBox("moov", bytes.Repeat(bmffBox("trak", bmffBox("free")), 100_000))), imaging.Options{}, boxes},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectLimit(t, c.data, "avif", c.opts, c.want)
		})
	}
}

// TestStripAVIFAndHEIC: the content of metadata becomes zeros. All else remains at its position.
func TestStripAVIFAndHEIC(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"turned.avif", "grid.avif", "sequence.avif", "photo.heic", "thumbnail.heic"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, ext := fixture(t, name), name[len(name)-4:]
			info, got := strip(t, append(bytes.Clone(data), "TRAILER"...), ext)
			if len(got) != len(data) || !info.HasMetadata() {
				t.Fatalf("got %d of %d bytes", len(got), len(data))
			}
			start, end := bytes.Index(data, []byte("MM\x00*")), bytes.Index(data, []byte("</x:xmpmeta>"))
			changed := 0
			for i := range data {
				if got[i] == data[i] {
					continue
				}
				changed++
				if got[i] != 0 || i < start-10 || i > end+12 {
					t.Fatalf("at %d: %#x became %#x", i, data[i], got[i])
				}
			}
			if with := start > 0; with != (changed >= 90) {
				t.Errorf("%d bytes changed", changed)
			}
			for _, trace := range []string{"GPS", "Cam", "xmpmeta"} {
				if bytes.Contains(got, []byte(trace)) {
					t.Errorf("%s is left", trace)
				}
			}
			if again, twice := strip(t, got, ext); again.HasMetadata() || !bytes.Equal(twice, got) {
				t.Error("stripping again changes it")
			}
		})
	}
}

func TestStripOfSpareBoxes(t *testing.T) {
	t.Parallel()
	pixels := bmffItem{"av01", "pixels", 30, 20, nil, false}
	of := func(meta []byte, behind ...[]byte) []byte {
		return joined(heif("avif", []bmffItem{pixels}, meta), joined(behind...))
	}
	secret, zeros := []byte("GPS 0.5N"), make([]byte, 8)
	track := func(boxes ...[]byte) []byte {
		return bmffBox("moov", bmffBox("trak", joined(boxes...)), bmffBox("mvhd", []byte("head")))
	}
	large := func(kind string, content []byte) []byte { return joined(u32(1), []byte(kind), u32(0, 24), content) }
	runStripCases(t, "avif", []stripCase{
		{"nothing to do", of(nil), of(nil)},
		{"zeros", of(bmffBox("free", zeros), bmffBox("free", zeros)), of(bmffBox("free", zeros), bmffBox("free", zeros))},
		{"padding", of(bmffBox("free", secret), bmffBox("skip", secret)), of(bmffBox("free", zeros), bmffBox("skip", zeros))},
		{"boxes of others", of(bmffBox("uuid", secret), bmffBox("what", secret)), of(bmffBox("free", zeros), bmffBox("what", zeros))},
		{"a large size", of(large("xml ", secret), large("uuid", secret)), of(large("free", zeros), large("uuid", zeros))},
		{"a description", of(bmffBox("iprp", bmffBox("ipco", bmffBox("udes", secret)))), of(bmffBox("iprp", bmffBox("ipco", bmffBox("free", zeros))))},
		{"data that is no image", of(nil, bmffBox("mdat", secret)), of(nil, bmffBox("mdat", zeros))},
		{"data of a sequence", of(nil, track(), bmffBox("mdat", []byte("frames"))), of(nil, track(), bmffBox("mdat", []byte("frames")))},
		{"a sequence", of(nil, track(bmffBox("udta", secret), bmffBox("mdia", secret), bmffBox("meta", secret))), of(nil, track(bmffBox("free", zeros), bmffBox("mdia", secret), bmffBox("free", zeros)))},
		{"behind the end", append(of(nil), "TRAILER"...), of(nil)},
	})
}

func TestStripOfItems(t *testing.T) {
	t.Parallel()
	with := func(sequence bool, kind, content string, inBox bool) []byte {
		file := heif("avif", []bmffItem{{"av01", "pixels", 30, 20, nil, false}, {kind, content, 0, 0, nil, inBox}, {"av01", "alpha", 30, 20, nil, inBox}})
		if sequence {
			return append(file, bmffBox("moov")...)
		}
		return file
	}
	secret, zeros := "GPS 0.5N", strings.Repeat("\x00", 8)
	cases := make([]stripCase, 0, 19)
	for _, kind := range []string{"Exif", "mime", "uri ", "what"} {
		for _, inBox := range []bool{false, true} {
			cases = append(cases,
				stripCase{kind, with(false, kind, secret, inBox), with(false, kind, zeros, inBox)},
				stripCase{kind + " of a sequence", with(true, kind, secret, inBox), with(true, kind, zeros, inBox)})
		}
	}
	for _, kind := range []string{"av01", "grid", "tmap"} {
		cases = append(cases, stripCase{kind, with(false, kind, secret, true), with(false, kind, secret, true)})
	}
	runStripCases(t, "avif", cases)
}

// TestStripKeepsImages: metadata that claims the bytes of an image does not destroy it.
func TestStripKeepsImages(t *testing.T) {
	t.Parallel()
	file := heif("avif", []bmffItem{{"av01", "pixels", 30, 20, nil, false}, {"Exif", "GPS 0.5N", 0, 0, nil, false}})
	at := len(file) - len("pixelsGPS 0.5N")
	for _, sequence := range [][]byte{nil, bmffBox("moov")} {
		claims := append(bytes.Replace(file, u32(at+6, 8), u32(at+3, 11), 1), sequence...)
		want := append(append(bytes.Clone(claims[:at+6]), make([]byte, 8)...), sequence...)
		runStripCases(t, "avif", []stripCase{{"the end of an image", claims, want}})
		start := append(bytes.Replace(file, u32(at+6, 8), u32(0, 8), 1), sequence...)
		if _, got := strip(t, start, "avif"); !bytes.Equal(got[:at], start[:at]) {
			t.Error("the start of the file has changed")
		}
	}
}

// locatedItems returns files with EXIF or XMP, and what is left of them in the mode
// [imaging.StripLocation].
func locatedItems(t testing.TB) []stripCase {
	t.Helper()
	gps := imagingtest.EXIF(binary.BigEndian, 6)
	segment := withSegments(drawJPEG(t, 8, 8), exifSegment(gps))
	_, stripped := stripBy(t, segment, "jpg", imaging.StripLocation)
	bare := stripped[12 : 4+int(binary.BigEndian.Uint16(stripped[4:]))] // of the EXIF segment, without its prefix
	padded := func(data string, n int, fill string) string { return data + strings.Repeat(fill, n-len(data)) }
	clean, located := strings.ReplaceAll(emptyXMP, "PROPERTY", `xmp:Rating="5"`), strings.ReplaceAll(emptyXMP, "PROPERTY", `xmp:Rating="5" exif:GPSLatitude="GPS"`)
	hdr := strings.ReplaceAll(emptyXMP, "PROPERTY", `xmlns:g="http://ns.apple.com/HDRGainMap/1.0/" g:HDRGainMapVersion="1"`)
	with := func(kind, content string, inBox bool, behind ...[]byte) []byte {
		return joined(heif("avif", []bmffItem{{"av01", "pixels", 30, 20, nil, false}, {kind, content, 0, 0, nil, inBox}}), joined(behind...))
	}
	claim := bmffBox("uuid", []byte("\xd8\xfe\xc3\xd6\x1b\x0e\x48\x3c\x92\x97\x58\x28\x87\x7e\xc4\x81"), []byte("a claim"))
	noClaim := bmffBox("uuid", make([]byte, 23))
	cases := make([]stripCase, 0, 28)
	for _, inBox := range []bool{false, true} {
		for _, prefix := range []string{"\x00\x00\x00\x00", "\x00\x00\x00\x06Exif\x00\x00"} {
			all, rest := prefix+string(gps), padded(prefix+string(bare), len(prefix)+len(gps), "\x00")
			cases = append(cases,
				stripCase{"EXIF", with("Exif", all, inBox), with("Exif", rest, inBox)},
				stripCase{"EXIF of a sequence", with("Exif", all, inBox, bmffBox("moov")), with("Exif", rest, inBox, bmffBox("moov"))},
				stripCase{"EXIF and credentials", with("Exif", all, inBox, claim), with("Exif", rest, inBox, noClaim)},
				stripCase{"EXIF without a location", with("Exif", rest, inBox, claim), with("Exif", rest, inBox, claim)})
		}
		cases = append(cases,
			stripCase{"damaged EXIF", with("Exif", "\x00\x00\x00\x00MM\x00*GPS", inBox), with("Exif", strings.Repeat("\x00", 11), inBox)},
			stripCase{"EXIF at another offset", with("Exif", "\x00\x00\x00\x01"+string(gps), inBox), with("Exif", strings.Repeat("\x00", 4+len(gps)), inBox)},
			stripCase{"XMP", with("mime", located, inBox), with("mime", padded(clean, len(located), " "), inBox)},
			stripCase{"XMP of a gain map", with("mime", hdr, inBox, claim), with("mime", hdr, inBox, claim)},
			stripCase{"XMP with nothing else", with("mime", strings.Replace(located, `xmp:Rating="5"`, "", 1), inBox), with("mime", strings.Repeat("\x00", len(located)-len(`xmp:Rating="5"`)), inBox)},
			stripCase{"data behind credentials", with("mime", clean, inBox, claim, bmffBox("mpvd", []byte("film"))), with("mime", clean, inBox, noClaim, bmffBox("mpvd", make([]byte, 4)))},
		)
	}
	return cases
}

// TestStripLocationOfItems: only the location is overwritten.
func TestStripLocationOfItems(t *testing.T) {
	t.Parallel()
	for _, c := range locatedItems(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			info, got := stripBy(t, c.data, "avif", imaging.StripLocation)
			if !bytes.Equal(got, c.want) || info.HasMetadata() == bytes.Equal(c.data, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			checkStripped(t, c.data, "avif")
			_, bare := strip(t, c.data, "avif")
			if kept := strings.Contains(c.name, "gain map"); bytes.Contains(bare, []byte("HDRGainMapVersion")) != kept || bytes.Contains(bare, []byte("Rating")) {
				t.Errorf("the other mode leaves %q", bare)
			}
		})
	}
	for _, name := range []string{"turned.avif", "photo.heic"} {
		if _, got := stripBy(t, fixture(t, name), name[len(name)-4:], imaging.StripLocation); bytes.Contains(got, []byte("GPS")) || bytes.Contains(got, onlyTurned(6)) != (name == "turned.avif") {
			t.Errorf("%s: the location is left, or the orientation is not", name)
		}
	}
}
