package imaging_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
)

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
