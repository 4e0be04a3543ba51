package imaging_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// FuzzBMFF: a checked AVIF or HEIC is within its limits. Without metadata it is valid, has the same
// length, and differs only in zeros and the names of boxes.
func FuzzBMFF(f *testing.F) {
	for _, name := range []string{"turned.avif", "grid.avif", "sequence.avif", "photo.heic", "thumbnail.heic"} {
		f.Add(fixture(f, name), name[len(name)-4:] == "heic")
	}
	pixels := bmffItem{"av01", "pixels", 30, 20, nil, false}
	f.Add(heif("avif", []bmffItem{pixels, {"Exif", "GPS", 0, 0, nil, true}}, bmffBox("uuid", []byte("x"))), false)
	f.Add(heif("mif1", []bmffItem{{"grid", gridOf(2, 60, 20), 60, 20, []int{2, 2}, true}, pixels}), false)
	for _, it := range locatedItems(f) {
		f.Add(it.data, false)
	}
	f.Add(largeData(heif("avif", []bmffItem{pixels})), false)
	f.Add(append(endless(heif("avif", []bmffItem{pixels})), bmffBox("moov", bmffBox("trak", bmffBox("udta")))...), false)
	f.Fuzz(func(t *testing.T, data []byte, heic bool) {
		ext := "avif"
		if heic {
			ext = "heic"
		}
		var info imaging.Info
		measured(t, func() (err error) {
			info, err = check(data, ext, imaging.Options{Strip: imaging.StripOn})
			return err
		})
		if info.Format == "" {
			return
		}
		if info.FramePixels <= 0 || info.FramePixels > 50_000_000 || info.End > int64(len(data)) {
			t.Errorf("passed as %+v", info)
		}
		_, once := strip(t, data, ext)
		again, twice := strip(t, once, ext)
		if !reflect.DeepEqual(described(again), described(info)) {
			t.Errorf("was %+v, is %+v", described(info), described(again))
		}
		if again.HasMetadata() || !bytes.Equal(once, twice) || info.HasMetadata() == bytes.Equal(once, data) {
			t.Errorf("HasMetadata is %t, then %t", info.HasMetadata(), again.HasMetadata())
		}
		if int64(len(once)) != info.End {
			t.Fatalf("%d of %d bytes", len(once), info.End)
		}
		checkStripped(t, data, ext)
		if bytes.Contains(data, []byte("DRGainMap")) || bytes.Contains(data, []byte("hdr-gain-map")) {
			return // its XMP is rewritten
		}
		for i, b := range once {
			if b != data[i] && b != 0 && !bytes.ContainsRune([]byte("free"), rune(b)) {
				t.Fatalf("at %d: %#x became %#x", i, data[i], b)
			}
		}
	})
}
