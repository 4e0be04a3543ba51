package imaging_test

import (
	"bytes"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

func readCorpus(t testing.TB, path string) (data []byte, ext string) {
	t.Helper()
	data, err := os.ReadFile(path)
	imagingtest.Must(t, err)
	return data, strings.TrimPrefix(filepath.Ext(path), ".")
}

func TestCorpusPasses(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color", "orientation", "anim", "svg-good"} {
		for _, path := range imagingtest.Files(t, folder) {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				data, ext := readCorpus(t, path)
				info, err := check(data, ext, imaging.Options{})
				imagingtest.Must(t, err)
				if ext != "svg" && (info.Width == 0 || info.Height == 0 || info.Frames == 0) {
					t.Errorf("got %+v", info)
				}
				imagingtest.Is(t, imaging.CheckFile(bytes.NewReader(data), ext, mediaTypes[ext]), nil, "as a file")
			})
		}
	}
}

// TestCorpusTruncatedIsRefused: only bytes after the end marker may be missing, and the trailer of
// a still GIF.
func TestCorpusTruncatedIsRefused(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color", "anim"} {
		for _, path := range imagingtest.Files(t, folder) {
			data, ext := readCorpus(t, path)
			for _, n := range []int{len(data) / 10, len(data) / 2, len(data) * 99 / 100, len(data) - 2, len(data) - 1} {
				info, err := check(data[:n], ext, imaging.Options{})
				if still := ext == "gif" && info.Frames == 1 && n == len(data)-1; verdictOf(err) != refused && !still {
					t.Errorf("%s cut to %d of %d bytes: %v", path, n, len(data), err)
				}
			}
		}
	}
}

// decode decodes every frame.
func decode(data []byte, ext string) (any, error) {
	r := bytes.NewReader(data)
	switch ext {
	case "gif":
		return gif.DecodeAll(r)
	case "png":
		return png.Decode(r)
	}
	return jpeg.Decode(r)
}

// pixels returns the decoded pixels.
func pixels(t testing.TB, data []byte, ext string) any {
	t.Helper()
	p, err := decode(data, ext)
	imagingtest.Must(t, err)
	return p
}

// invented is the location in the EXIF of the corpus: 0 degrees, 30 minutes, 0 seconds.
const invented = "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x1e\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01"

// traces are byte strings that occur in the metadata of the corpus, but not in its pixels.
var traces = []string{
	"GPS", "gps", "http://", "xpacket", "Photoshop", "8BIM", "secret", "TestCam", "Nobody", "Nowhere", "TRAILER",
	"tEXt", "iTXt", "zTXt", "tIME", "date:", "Software", "XMP Data", "Adobe Photoshop",
	invented,
}

func TestCorpusStripped(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color", "orientation", "anim"} {
		for _, path := range imagingtest.Files(t, folder) {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				data, ext := readCorpus(t, path)
				info, _, stripped := stripsWhole(t, data, ext)
				if !reflect.DeepEqual(pixels(t, data, ext), pixels(t, stripped, ext)) {
					t.Error("the pixels differ")
				}
				lookForTraces(t, stripped, info.Orientation)
			})
		}
	}
}

// lookForTraces fails the test if there is metadata other than an orientation in EXIF.
func lookForTraces(t *testing.T, stripped []byte, o imaging.Orientation) {
	t.Helper()
	for _, trace := range traces {
		if bytes.Contains(stripped, []byte(trace)) {
			t.Errorf("%q is left", trace)
		}
	}
	if o != imaging.Upright {
		minimal := onlyTurned(byte(o))
		if !bytes.Contains(stripped, minimal) {
			t.Error("the orientation is lost")
		}
		stripped = bytes.Replace(stripped, exifSegment(minimal), nil, 1)
		stripped = bytes.Replace(stripped, chunk("eXIf", minimal), nil, 1)
	}
	if bytes.Contains(stripped, []byte("Exif")) || bytes.Contains(stripped, []byte("eXIf")) {
		t.Error("EXIF is left")
	}
}

func TestCorpusOrientations(t *testing.T) {
	t.Parallel()
	for _, path := range imagingtest.Files(t, "orientation") {
		data, ext := readCorpus(t, path)
		info, stripped := strip(t, data, ext)
		name := filepath.Base(path)
		want := imaging.Orientation(6) // for files without a number; the one with a trailer has 1
		if number, ok := strings.CutPrefix(name, "exif-"); ok {
			want = imaging.Orientation(number[0] - '0')
		}
		if strings.HasPrefix(name, "trailer") {
			want = imaging.Upright
		}
		if info.Orientation != want || !info.HasMetadata() || len(stripped) >= len(data) {
			t.Errorf("%s: %d, %t, %d of %d bytes", name, info.Orientation, info.HasMetadata(), len(stripped), len(data))
		}
		if placed := bytes.Contains(data, []byte(invented)); placed == strings.Contains(name, "odd") {
			t.Errorf("%s: the invented location is %t", name, placed)
		}
	}
}

func TestCorpusProfiles(t *testing.T) {
	t.Parallel()
	for _, path := range imagingtest.Files(t, "color") {
		data, ext := readCorpus(t, path)
		info, _ := strip(t, data, ext)
		imagingtest.Equal(t, info.Profile != nil, !strings.Contains(path, "cmyk"), path, "a profile is")
		imagingtest.Equal(t, info.Components == 4, strings.Contains(path, "cmyk"), path, info.Components, "components")
	}
}
