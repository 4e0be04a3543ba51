package imaging_test

import (
	"bytes"
	"strings"
	"testing"
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
		{"data that is no picture", of(nil, bmffBox("mdat", secret)), of(nil, bmffBox("mdat", zeros))},
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

// TestStripKeepsPictures: metadata that claims the bytes of a picture does not destroy it.
func TestStripKeepsPictures(t *testing.T) {
	t.Parallel()
	file := heif("avif", []bmffItem{{"av01", "pixels", 30, 20, nil, false}, {"Exif", "GPS 0.5N", 0, 0, nil, false}})
	at := len(file) - len("pixelsGPS 0.5N")
	for _, sequence := range [][]byte{nil, bmffBox("moov")} {
		claims := append(bytes.Replace(file, u32(at+6, 8), u32(at+3, 11), 1), sequence...)
		want := append(append(bytes.Clone(claims[:at+6]), make([]byte, 8)...), sequence...)
		runStripCases(t, "avif", []stripCase{{"the end of a picture", claims, want}})
		start := append(bytes.Replace(file, u32(at+6, 8), u32(0, 8), 1), sequence...)
		if _, got := strip(t, start, "avif"); !bytes.Equal(got[:at], start[:at]) {
			t.Error("the start of the file has changed")
		}
	}
}
