package imaging_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/imaging"
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
			_, err := check(c.data, "avif", imaging.Options{})
			if verdictOf(err) != refused || !strings.Contains(err.Error(), c.message) {
				t.Errorf("got %v (%s), want a content error with %q", err, verdictOf(err), c.message)
			}
		})
	}
}

func TestTruncatedAVIFAndHEICAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"turned.avif", "grid.avif", "sequence.avif", "photo.heic", "thumbnail.heic"} {
		data := fixture(t, name)
		for n := range data {
			if _, err := check(data[:n], name[len(name)-4:], imaging.Options{}); verdictOf(err) != refused {
				t.Fatalf("the first %d of %d bytes of %s: %v (%s)", n, len(data), name, err, verdictOf(err))
			}
		}
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

func TestReaderFailuresOfAVIF(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk on fire")
	data := fixture(t, "turned.avif")
	for _, n := range []int{0, 5, 40, 300, len(data) - 3} {
		r := brokenReader{Reader: io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(cause))}
		if _, err := imaging.CheckImage(r, int64(len(data)), "avif", imaging.Options{}); !errors.Is(err, cause) {
			t.Errorf("failing after %d bytes: %v", n, err)
		}
	}
}
