package imaging_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

// orientationOf reads EXIF in both of the formats that hold it, which must agree.
func orientationOf(t testing.TB, jpg, pic, tiff []byte) imaging.Orientation {
	t.Helper()
	a, err := check(withSegments(jpg, exifSegment(tiff)), "jpg", imaging.Options{})
	imagingtest.Must(t, err)
	b, err := check(withChunks(pic, chunk("eXIf", tiff)), "png", imaging.Options{})
	imagingtest.Must(t, err)
	imagingtest.Equal(t, a.Orientation, b.Orientation, "a JPEG says", "a PNG")
	return a.Orientation
}

func TestOrientation(t *testing.T) {
	t.Parallel()
	jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
	le, be := binary.LittleEndian, binary.BigEndian
	six := tiffEntry{0x0112, 3, 1, [4]byte{0, 6}}
	good := exif(be, six)
	patched := func(at int, b ...byte) []byte {
		out := bytes.Clone(good)
		copy(out[at:], b)
		return out
	}
	for _, c := range []struct {
		name string
		tiff []byte
		want imaging.Orientation
	}{
		{"big endian", good, 6},
		{"little endian", exif(le, tiffEntry{0x0112, 3, 1, [4]byte{6}}), 6},
		{"in the other byte order", exif(le, six), 1},
		{"after other entries", turned(8), 8},
		{"the first of two", exif(be, tiffEntry{0x0112, 3, 1, [4]byte{0, 3}}, six), 3},
		{"directory at the end", append([]byte("MM\x00*\x00\x00\x00\x0cgaps"), good[8:]...), 6},
		{"directory without an end", good[:22], 6},
		{"nothing", nil, 1},
		{"no structure", []byte("Copyright"), 1},
		{"half a header", good[:6], 1},
		{"header only", good[:8], 1},
		{"half a count", good[:9], 1},
		{"half an entry", good[:21], 1},
		{"mixed byte orders", patched(0, 'I', 'I'), 1},
		{"wrong magic", patched(3, '+'), 1},
		{"no entries", patched(8, 0, 0), 1},
		{"more entries than there are", patched(8, 0xFF, 0xFF), 6},
		{"more entries than there are, none of them it", patched(8, 0xFF, 0xFF, 1, 0x13), 1},
		{"directory at the header", patched(4, 0, 0, 0, 0), 1},
		{"directory at the last byte", patched(4, 0, 0, 0, 25), 1},
		{"directory behind the end", patched(4, 0, 0, 1, 0), 1},
		{"directory far behind the end", patched(4, 0xFF, 0xFF, 0xFF, 0xFF), 1},
		{"next directory is itself", patched(22, 0, 0, 0, 8), 6},
		{"as a byte", patched(13, 1), 1},
		{"as a long", patched(13, 4), 1},
		{"two values", patched(17, 2), 1},
		{"no value", patched(17, 0), 1},
		{"huge count", patched(14, 0xFF, 0xFF, 0xFF, 0xFF), 1},
		{"wrong type before the right one", exif(be, tiffEntry{0x0112, 4, 1, [4]byte{0, 0, 0, 3}}, six), 6},
		{"0", patched(19, 0), 1},
		{"9", patched(19, 9), 1},
		{"256", patched(18, 1, 0), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			imagingtest.Equal(t, orientationOf(t, jpg, pic, c.tiff), c.want)
		})
	}
	for o := range byte(9) {
		imagingtest.Equal(t, orientationOf(t, jpg, pic, turned(o)), imaging.Orientation(max(1, o)))
	}
}

func TestWhichEXIFCounts(t *testing.T) {
	t.Parallel()
	jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
	damaged := chunk("eXIf", turned(6))
	damaged[len(damaged)-1] ^= 1
	for _, c := range []struct {
		name, ext string
		data      []byte
		want      imaging.Orientation
	}{
		{"first of two", "jpg", withSegments(jpg, exifSegment(turned(6)), exifSegment(turned(3))), 6},
		{"first of two, also when it says nothing", "jpg", withSegments(jpg, exifSegment(nil), exifSegment(turned(3))), 1},
		{"behind XMP", "jpg", withSegments(jpg, textSegment(0xE1, xmpName+"<x/>"), exifSegment(turned(6))), 6},
		{"behind the scan", "jpg", beforeEnd(jpg, 2, exifSegment(turned(6))), 1},
		{"in a comment", "jpg", withSegments(jpg, segment(0xFE, append([]byte("Exif\x00\x00"), turned(6)...))), 1},
		{"of another name", "jpg", withSegments(jpg, segment(0xE1, append([]byte("EXIF\x00\x00"), turned(6)...))), 1},
		{"of another fill byte", "jpg", withSegments(jpg, segment(0xE1, append([]byte("Exif\x00\xff"), turned(6)...))), 6},
		{"without a fill byte", "jpg", withSegments(jpg, textSegment(0xE1, "Exif\x00")), 1},
		{"largest segment", "jpg", withSegments(jpg, exifSegment(append(turned(6), make([]byte, 65400)...))), 6},
		{"first of two", "png", withChunks(pic, chunk("eXIf", turned(6)), chunk("eXIf", turned(3))), 6},
		{"behind the pixels", "png", beforeEnd(pic, 12, chunk("eXIf", turned(6))), 1},
		{"before and behind the pixels", "png", withChunks(beforeEnd(pic, 12, chunk("eXIf", turned(3))), chunk("eXIf", turned(6))), 6},
		{"wrong checksum", "png", withChunks(pic, damaged), 1},
		{"chunk larger than any buffer", "png", withChunks(pic, chunk("eXIf", append(turned(6), make([]byte, 1<<20)...))), 6},
		{"chunk and its checksum fill the buffer", "png", withChunks(pic, chunk("eXIf", append(turned(6), make([]byte, 65532-64)...))), 6},
		{"chunk one larger", "png", withChunks(pic, chunk("eXIf", append(turned(6), make([]byte, 65533-64)...))), 6},
	} {
		t.Run(c.ext+" "+c.name, func(t *testing.T) {
			t.Parallel()
			info, stripped := strip(t, c.data, c.ext)
			imagingtest.Equal(t, info.Orientation, c.want)
			if again, _ := strip(t, stripped, c.ext); again.Orientation != c.want {
				t.Errorf("stripped: got %d, want %d", again.Orientation, c.want)
			}
			if bytes.Contains(stripped, []byte("GPS")) {
				t.Error("the location is left")
			}
		})
	}
}

// pngText returns an iTXt chunk with XMP.
func pngText(xmp string) []byte {
	return chunk("iTXt", []byte("XML:com.adobe.xmp\x00\x00\x00\x00\x00"+xmp))
}

// photos returns an image of each format with all metadata of [imagingtest].
func photos(t testing.TB, order binary.AppendByteOrder) map[string][]byte {
	exif, xmp := imagingtest.EXIF(order, 6), imagingtest.XMP("", "")
	what := []byte(imagingtest.Place)
	return map[string][]byte{
		"jpg": append(withSegments(drawJPEG(t, 16, 8), imagingtest.Metadata(order, 6), textSegment(0xEB, "JP"+imagingtest.Place)), what...),
		"png": append(withChunks(drawPNG(t, 16, 8), chunk("eXIf", exif), pngText(xmp), chunk("zTXt", joined([]byte("Raw profile type exif\x00\x00"), what)),
			chunk("tEXt", []byte("Copyright\x00"+imagingtest.Owner)), chunk("caBX", what)), what...),
		"webp": append(riffFile(extended(flagEXIF|flagXMP, 16, 8), bitstream(drawWebP(t, opaque(16, 8), webp.Options{})), webpChunk("EXIF", exif),
			webpChunk("XMP ", []byte(xmp)), webpChunk("what", what), webpChunk("C2PA", what)), what...),
	}
}

// TestStripLocation: the location and the device are removed. The date, the copyright and the
// orientation remain.
func TestStripLocation(t *testing.T) {
	t.Parallel()
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		for ext, data := range photos(t, order) {
			t.Run(fmt.Sprint(order, ext), func(t *testing.T) {
				t.Parallel()
				info, got := stripBy(t, data, ext, imaging.StripLocation)
				if bytes.Contains(got, []byte(imagingtest.Place)) {
					t.Errorf("the location is left: %q", got)
				}
				if !info.HasMetadata() || info.Orientation != 6 {
					t.Errorf("orientation %d, metadata %t", info.Orientation, info.HasMetadata())
				}
				for _, kept := range []string{imagingtest.Date, imagingtest.Owner} {
					if n := bytes.Count(got, []byte(kept)); n < 2 {
						t.Errorf("%q is there %d times", kept, n)
					}
				}
				again, twice := stripBy(t, got, ext, imaging.StripLocation)
				if again.HasMetadata() || !bytes.Equal(twice, got) {
					t.Error("stripping again changes it")
				}
				if want, is := described(info), described(again); is.Orientation != want.Orientation || is.Width != want.Width {
					t.Errorf("was %+v, is %+v", want, is)
				}
				if _, bare := strip(t, got, ext); bytes.Contains(bare, []byte(imagingtest.Owner)) {
					t.Error("metadata is left by the other mode")
				}
			})
		}
	}
}

// TestStripLocationOfLateEXIF: EXIF behind the pixels of a PNG stays there, so that its orientation
// still does not count.
func TestStripLocationOfLateEXIF(t *testing.T) {
	t.Parallel()
	pic := drawPNG(t, 8, 8)
	info, got := stripBy(t, beforeEnd(pic, 12, chunk("eXIf", imagingtest.EXIF(binary.BigEndian, 6))), "png", imaging.StripLocation)
	if info.Orientation != imaging.Upright || bytes.Contains(got, []byte(imagingtest.Place)) {
		t.Errorf("orientation %d, %q", info.Orientation, got)
	}
	if pixels, exif := bytes.Index(got, []byte("IDAT")), bytes.Index(got, []byte("eXIf")); exif < pixels || !bytes.Contains(got, []byte(imagingtest.Owner)) {
		t.Errorf("EXIF is at %d, the pixels at %d", exif, pixels)
	}
}

// TestStripLocationKeepsAll: a file without a location is not touched, nor are its credentials.
func TestStripLocationKeepsAll(t *testing.T) {
	t.Parallel()
	exif := exif(binary.BigEndian, tiffEntry{0x0112, 3, 1, [4]byte{0, 6}}, tiffEntry{0x0128, 3, 1, [4]byte{0, 2}})
	xmp := strings.ReplaceAll(emptyXMP, "PROPERTY", `xmp:Rating="5"`)
	claim := []byte("a claim")
	pixels := bitstream(drawWebP(t, opaque(16, 8), webp.Options{}))
	for ext, data := range map[string][]byte{
		"jpg":  withSegments(drawJPEG(t, 16, 8), exifSegment(exif), textSegment(0xE1, xmpName+xmp), textSegment(0xEB, "JP\x00\x01"), textSegment(0xEB, "JP\x00\x02")),
		"png":  withChunks(drawPNG(t, 16, 8), chunk("eXIf", exif), pngText(xmp), chunk("tIME", make([]byte, 7)), chunk("caBX", claim)),
		"webp": riffFile(extended(flagEXIF|flagXMP, 16, 8), pixels, webpChunk("EXIF", exif), webpChunk("XMP ", []byte(xmp)), webpChunk("C2PA", claim)),
		"gif":  beforeEnd(drawGIF(t, 4, 4, 2), 1, []byte("!\xfe\x01a\x00!\xff\x0bC2PA_GIF\x01\x00\x00\x01a\x00")),
	} {
		if info, got := stripBy(t, data, ext, imaging.StripLocation); info.HasMetadata() || !bytes.Equal(got, data) {
			t.Errorf("%s: got %q, want %q", ext, got, data)
		}
		behind := append(bytes.Clone(data), "film"...)
		want := data
		for _, claim := range [][]byte{textSegment(0xEB, "JP\x00\x01"), textSegment(0xEB, "JP\x00\x02"), chunk("caBX", claim), []byte("!\xff\x0bC2PA_GIF\x01\x00\x00\x01a\x00")} {
			want = bytes.Replace(want, claim, nil, 1)
		}
		if ext == "webp" {
			want = riffFile(extended(flagEXIF|flagXMP, 16, 8), pixels, webpChunk("EXIF", exif), webpChunk("XMP ", []byte(xmp)))
		}
		if info, got := stripBy(t, behind, ext, imaging.StripLocation); !info.HasMetadata() || !bytes.Equal(got, want) {
			t.Errorf("%s with a film: got %q, want %q", ext, got, want)
		}
	}
}

const emptyXMP = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">` +
	`<rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:exif="http://ns.adobe.com/exif/1.0/" PROPERTY/></rdf:RDF></x:xmpmeta>`

// TestStripHostileEXIF: of EXIF whose location cannot be removed with certainty only the
// orientation remains.
func TestStripHostileEXIF(t *testing.T) {
	t.Parallel()
	order := binary.BigEndian
	turn := tiffEntry{0x0112, 3, 1, [4]byte{0, 6}}
	long := func(tag uint16, v byte) tiffEntry { return tiffEntry{tag, 4, 1, [4]byte{0, 0, 0, v}} }
	text := func(tag uint16, count uint32, at byte) tiffEntry {
		return tiffEntry{tag, 2, count, [4]byte{0, 0, 0, at}}
	}
	secret := []byte("\x00\x00GPS 0.5N 0.5E....")
	valid := exif(order, turn, text(0x010E, 9, 38))
	for name, data := range map[string][]byte{
		"no header":                 []byte("GPS 0.5N"),
		"a location behind the end": exif(order, turn, long(0x8825, 200)),
		"a location in the header":  exif(order, turn, long(0x8825, 4)),
		"details behind the end":    exif(order, turn, long(0x8769, 200)),
		"a loop":                    exif(order, turn, long(0x8769, 8)),
		"a loop of the location":    exif(order, turn, long(0x8825, 8)),
		"a text behind the end":     exif(order, turn, text(0x010E, 100, 38)),
		"a text over the location":  append(exif(order, turn, text(0x010E, 20, 50), long(0x8825, 50)), secret...),
		"a text over the directory": append(exif(order, turn, text(0x010E, 20, 10), long(0x8825, 50)), secret...),
		"a text over a maker note":  append(exif(order, turn, text(0x010E, 20, 50), text(0x927C, 8, 52)), secret...),
		"a cut directory":           exif(order, turn, long(0x8825, 50))[:30],
		"a next directory in this":  append(exif(order, turn)[:22], 0, 0, 0, 9),
		"many overlapping texts":    append(exif(order, turn, text(0x010E, 20, 62), text(0x010F, 20, 62), long(0x8825, 4)), secret...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := byte(1)
			if bytes.Contains(data, []byte{0x01, 0x12, 0, 3}) {
				o = 6
			}
			var want, wantChunk []byte
			if o == 6 {
				want, wantChunk = exifSegment(onlyTurned(6)), chunk("eXIf", onlyTurned(6))
			}
			jpg, pic := drawJPEG(t, 8, 8), drawPNG(t, 8, 8)
			if _, got := stripBy(t, withSegments(jpg, exifSegment(data)), "jpg", imaging.StripLocation); !bytes.Equal(got, withSegments(jpg, want)) {
				t.Errorf("got %q", got[:min(len(got), 120)])
			}
			if _, got := stripBy(t, withChunks(pic, chunk("eXIf", data)), "png", imaging.StripLocation); !bytes.Equal(got, withChunks(pic, wantChunk)) {
				t.Errorf("got %q", got[:min(len(got), 120)])
			}
		})
	}
	data := withSegments(drawJPEG(t, 8, 8), exifSegment(append(valid, "a text..."...)))
	if _, got := stripBy(t, data, "jpg", imaging.StripLocation); !bytes.Equal(got, data) {
		t.Errorf("a valid one became %q", got[:80])
	}
}

// TestStripHostileXMP: XMP that is not understood is dropped.
func TestStripHostileXMP(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 8, 8)
	rest := func(xmp string) string {
		_, got := stripBy(t, withSegments(jpg, textSegment(0xE1, xmpName+xmp)), "jpg", imaging.StripLocation)
		return strings.TrimPrefix(string(got[2:len(got)-len(jpg)+2]), "\xff\xe1\x00"+string(rune(0)))
	}
	with := func(property string) string { return strings.ReplaceAll(emptyXMP, "PROPERTY", property) }
	const rated = `xmp:Rating="5"`
	for name, c := range map[string]struct{ xmp, want string }{
		"nothing else":              {with(`exif:GPSLatitude="GPS"`), ""},
		"one of two":                {with(rated + ` exif:GPSLatitude="GPS"`), with(rated)},
		"another prefix":            {strings.ReplaceAll(with(rated+` exif:GPSLatitude="GPS"`), "exif", "e"), strings.ReplaceAll(with(rated), "exif", "e")},
		"another address":           {strings.Replace(with(rated), "exif/1.0", "gps", 1), strings.Replace(with(rated), "exif/1.0", "gps", 1)},
		"not closed":                {strings.TrimSuffix(with(rated+` exif:GPSLatitude="GPS"`), "</x:xmpmeta>"), ""},
		"closed by another":         {strings.Replace(with(rated), "</rdf:RDF>", "</rdf:rdf>", 1), ""},
		"entities":                  {`<!DOCTYPE a [<!ENTITY b "GPS">]>` + with(rated), ""},
		"no namespace":              {strings.ReplaceAll(with(rated), ` xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"`, ""), ""},
		"comments":                  {"<!--GPS-->" + with(rated) + "<?what GPS?>", with(rated)},
		"text":                      {strings.Replace(with(rated), "<rdf:RDF", "GPS<rdf:RDF", 1), with(rated)},
		"other encodings":           {`<?xml version="1.0" encoding="UTF-16"?>` + with(rated), ""},
		"no XML":                    {"GPS", ""},
		"elements beside the RDF":   {strings.Replace(with(rated), "</x:xmpmeta>", "<x:gps>GPS</x:gps></x:xmpmeta>", 1), with(rated)},
		"attributes around the RDF": {strings.Replace(with(rated), "<rdf:RDF", `<rdf:RDF exif:gps="GPS"`, 1), with(rated)},
	} {
		got := rest(c.xmp)
		if at := strings.Index(got, "<"); at > 0 {
			got = got[at:]
		}
		imagingtest.Equal(t, got, c.want, name)
	}
}

// FuzzLocation: a stripped image shows the same, and is not changed by stripping again. The recipe
// damages its metadata. Damage can turn a location into a text that remains; see FuzzPlanted.
func FuzzLocation(f *testing.F) {
	exts := []string{"jpg", "png", "webp"}
	all := []map[string][]byte{photos(f, binary.BigEndian), photos(f, binary.LittleEndian)}
	for kind := range uint8(6) {
		f.Add(kind, []byte{0, 40, 7, 0, 90, 255, 1, 0, 3})
	}
	f.Fuzz(func(t *testing.T, kind uint8, recipe []byte) {
		ext := exts[int(kind)%len(exts)]
		data := bytes.Clone(all[int(kind)/len(exts)%2][ext])
		for ; len(recipe) >= 3; recipe = recipe[3:] {
			data[(int(recipe[0])<<8|int(recipe[1]))%len(data)] = recipe[2]
		}
		checkStripped(t, data, ext)
	})
}

// checkStripped checks the result of each mode, if data is an image.
func checkStripped(t *testing.T, data []byte, ext string) {
	t.Helper()
	for _, mode := range []imaging.StripMode{imaging.StripOff, imaging.StripOn, imaging.StripLocation} {
		if _, err := check(data, ext, imaging.Options{Strip: mode, MaxPixels: 10_000}); err != nil {
			return
		}
		info, once := stripBy(t, data, ext, mode)
		again, twice := stripBy(t, once, ext, mode)
		if again.HasMetadata() || !bytes.Equal(once, twice) || info.HasMetadata() == bytes.Equal(once, data) {
			t.Errorf("%s: HasMetadata is %t, then %t", mode, info.HasMetadata(), again.HasMetadata())
		}
		want, got := described(info), described(again)
		want.End, got.End = 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: was %+v, is %+v", mode, want, got)
		}
		if mode == imaging.StripOff && !bytes.Equal(once, data) {
			t.Error("it has changed")
		}
		if ext == "webp" || ext == "avif" || ext == "heic" {
			continue
		}
		before, err := decode(data, ext)
		if err != nil {
			continue
		}
		if after, err := decode(once, ext); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the pixels differ: %v", mode, err)
		}
	}
}

// TestDamagedEXIF: no damage of one byte makes the location or the thumbnail remain.
func TestDamagedEXIF(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 8, 8)
	for _, order := range []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian} {
		whole := imagingtest.EXIF(order, 6)
		last := bytes.Index(whole, []byte("ASCII\x00\x00\x00"))
		other := []byte(imagingtest.Place) // of fields before the location, which may become others
		whole = append(bytes.ReplaceAll(whole[:last], other, bytes.Repeat([]byte("x"), len(other))), whole[last:]...)
		last = bytes.LastIndex(whole, []byte(imagingtest.Place+"\x00"))
		copy(whole[last:], "a serial number")
		if n := bytes.Count(whole, []byte(imagingtest.Place)); n != 2 {
			t.Fatalf("the location is there %d times", n)
		}
		for i := range whole {
			for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255, whole[i]} {
				damaged := bytes.Clone(whole)
				damaged[i] ^= flip
				if _, got := stripBy(t, withSegments(jpg, exifSegment(damaged)), "jpg", imaging.StripLocation); bytes.Contains(got, []byte(imagingtest.Place)) {
					t.Errorf("it is left with %d at %d", damaged[i], i)
				}
			}
		}
	}
}

// FuzzMetadata: whatever EXIF, XMP, image resources and an index of images hold, a stripped image
// shows the same, and is not changed by stripping again.
func FuzzMetadata(f *testing.F) {
	jpg := drawJPEG(f, 8, 8)
	p := imagingtest.Photo{Image: jpg, GainMap: jpg, Order: binary.BigEndian, XMP: true}.JPEG()
	index := p[bytes.Index(p, []byte("MPF\x00"))+4:]
	for i, seed := range [][]byte{
		imagingtest.EXIF(binary.BigEndian, 6), imagingtest.EXIF(binary.LittleEndian, 6), []byte(imagingtest.XMP("", "")), []byte(emptyXMP),
		imagingtest.Resources()[14:], index[:98], onlyTurned(3),
	} {
		f.Add(seed, uint8(i))
	}
	segments := []struct {
		marker byte
		prefix string
	}{{0xE1, "Exif\x00\x00"}, {0xE1, xmpName}, {0xED, "Photoshop 3.0\x00"}, {0xE2, "MPF\x00"}}
	pic := drawPNG(f, 8, 8)
	f.Fuzz(func(t *testing.T, data []byte, kind uint8) {
		if len(data) > 60_000 {
			return
		}
		segment := segments[int(kind)%len(segments)]
		checkStripped(t, append(withSegments(jpg, textSegment(segment.marker, segment.prefix+string(data))), p...), "jpg")
		checkStripped(t, withChunks(pic, chunk("eXIf", data), pngText(string(data))), "png")
	})
}

// TestStripEXIFSharedTables: many references to one directory are not read again and again.
func TestStripEXIFSharedTables(t *testing.T) {
	t.Parallel()
	order := binary.BigEndian
	const entries = 1800
	size := uint32(2 + 12*entries + 4)
	table := func(tag uint16, v uint32) []byte {
		one := tiffEntry{tag, 4, 1, [4]byte(order.AppendUint32(nil, v))}
		return exif(order, slices.Repeat([]tiffEntry{one}, entries)...)
	}
	data := joined(table(0x8769, 8+size), table(0xA005, 8+2*size)[8:], table(0x0001, 0)[8:])
	jpg := drawJPEG(t, 8, 8)
	begun := time.Now()
	if _, got := stripBy(t, withSegments(jpg, exifSegment(data)), "jpg", imaging.StripLocation); !bytes.Equal(got, jpg) {
		t.Error("it is left")
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestStripEXIFOfOthers: tags of other standards, between those of EXIF, are removed.
func TestStripEXIFOfOthers(t *testing.T) {
	t.Parallel()
	jpg := drawJPEG(t, 8, 8)
	for name, tag := range map[string]uint16{
		"XMP": 0x02BC, "GeoTIFF scale": 0x830E, "IPTC": 0x83BB, "GeoTIFF point": 0x8482, "GeoTIFF matrix": 0x85D8,
		"Photoshop": 0x8649, "GeoTIFF keys": 0x87AF, "GeoTIFF text": 0x87B1, "TIFF/EP history": 0x9213, "layers of Photoshop": 0x935C,
	} {
		data := exif(binary.BigEndian, tiffEntry{0x0112, 3, 1, [4]byte{0, 6}}, tiffEntry{tag, 7, uint32(len(imagingtest.Place)), [4]byte{0, 0, 0, 38}})
		data = append(data, imagingtest.Place...)
		_, got := stripBy(t, withSegments(jpg, exifSegment(data)), "jpg", imaging.StripLocation)
		if bytes.Contains(got, []byte(imagingtest.Place)) {
			t.Errorf("%s is left", name)
		}
	}
}

// FuzzPlanted: whatever EXIF has besides a whole location, that is removed. The rest consists of
// other entries of the first directory, the position of the next one, and data behind the location.
func FuzzPlanted(f *testing.F) {
	orders := []binary.AppendByteOrder{binary.BigEndian, binary.LittleEndian}
	f.Add([]byte("\x01\x0e\x00\x02\x00\x00\x00\x08\x00\x00\x00\x60"), []byte("a photo"), uint32(0), false)
	f.Add([]byte("\x69\x87\x04\x00\x01\x00\x00\x00\x50\x00\x00\x00"), []byte{}, uint32(40), true)
	pic, jpg := drawPNG(f, 8, 8), drawJPEG(f, 8, 8)
	pixels := bitstream(drawWebP(f, opaque(16, 8), webp.Options{}))
	f.Fuzz(func(t *testing.T, entries, data []byte, next uint32, little bool) {
		if len(entries)+len(data) > 50_000 || bytes.Contains(data, []byte(imagingtest.Place)) {
			return
		}
		order := orders[0]
		if little {
			order = orders[1]
		}
		tiff := planted(order, entries[:len(entries)/12*12], data, next)
		for ext, image := range map[string][]byte{
			"jpg":  withSegments(jpg, exifSegment(tiff)),
			"png":  withChunks(pic, chunk("eXIf", tiff)),
			"webp": riffFile(extended(flagEXIF, 16, 8), pixels, webpChunk("EXIF", tiff)),
		} {
			for _, mode := range []imaging.StripMode{imaging.StripOn, imaging.StripLocation} {
				if _, got := stripBy(t, image, ext, mode); bytes.Contains(got, []byte(imagingtest.Place)) {
					t.Errorf("%s, %s: the location is left", ext, mode)
				}
			}
		}
	})
}

// planted returns EXIF with other entries and a location, which has the mark of a place.
func planted(order binary.AppendByteOrder, entries, data []byte, next uint32) []byte {
	b := exif(order)[:8]
	b = append(order.AppendUint16(b, uint16(len(entries)/12+1)), entries...)
	entry := func(tag, kind uint16, count, value int) {
		b = order.AppendUint16(order.AppendUint16(b, tag), kind)
		b = order.AppendUint32(order.AppendUint32(b, uint32(count)), uint32(value))
	}
	entry(0x8825, 4, 1, len(b)+12+4)
	b = order.AppendUint16(order.AppendUint32(b, next), 1)
	entry(0x001B, 7, len(imagingtest.Place), len(b)+12+4)
	b = order.AppendUint32(b, 0)
	return append(append(b, imagingtest.Place...), data...)
}
