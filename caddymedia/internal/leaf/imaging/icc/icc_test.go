package icc_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// colors returns pixels of four bytes with colours from all over the space.
func colors() (pix []byte) {
	for r := 0; r < 256; r += 15 {
		for g := 0; g < 256; g += 15 {
			for b := 0; b < 256; b += 15 {
				pix = append(pix, byte(r), byte(g), byte(b), byte(r^g^b))
			}
		}
	}
	return pix
}

// farthest returns the largest difference of two bytes.
func farthest(a, b []byte) (most int) {
	for i := range a {
		most = max(most, int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	return most
}

// TestPixels: colours of RGB profiles become the codes of sRGB that look the same. Alpha stays.
func TestPixels(t *testing.T) {
	t.Parallel()
	same := colors()
	table := func(kind string, side int) []imagingtest.Tag {
		return []imagingtest.Tag{imagingtest.Table(kind, 3, side, imagingtest.Code)}
	}
	linear := slices.Clone(same)
	for i := range linear {
		if i%4 != 3 {
			linear[i] = byte(math.Round(255 * srgb(float64(linear[i])/255)))
		}
	}
	swapped := imagingtest.Table("mft2", 3, 9, func(d []float64) [3]float64 { return [3]float64{d[2], d[1], d[0]} })
	rotated := slices.Clone(same)
	for p := rotated; len(p) > 0; p = p[4:] {
		p[0], p[2] = p[2], p[0]
	}
	for name, c := range map[string]struct {
		connection string
		tags       []imagingtest.Tag
		want       []byte
		most       int
	}{
		"sRGB":               {"XYZ ", imagingtest.Display(imagingtest.SRGB, nil), same, 1},
		"linear":             {"XYZ ", imagingtest.Display(imagingtest.SRGB, imagingtest.Gamma(1)), linear, 1},
		"lut8":               {"Lab ", table("mft1", 33), same, 16},
		"lut16":              {"Lab ", table("mft2", 33), same, 3},
		"lutAToB":            {"Lab ", table("mAB ", 33), same, 3},
		"a table first":      {"Lab ", append(imagingtest.Display(imagingtest.SRGB, nil), swapped), rotated, 12},
		"no order of tables": {"Lab ", append([]imagingtest.Tag{swapped}, imagingtest.Display(imagingtest.SRGB, nil)...), rotated, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transform, err := icc.Parse(imagingtest.ICC("RGB ", c.connection, c.tags...))
			imagingtest.Must(t, err)
			got := slices.Clone(same)
			transform.Pixels(got)
			if off := farthest(got, c.want); off > c.most {
				t.Errorf("a colour is off by %d", off)
			}
		})
	}
}

// srgb returns the code of sRGB for an amount of light.
func srgb(light float64) float64 {
	if light <= 0.0031308 {
		return 12.92 * light
	}
	return 1.055*math.Pow(light, 1/2.4) - 0.055
}

// TestWideColors: known colours of Display P3 become those of sRGB, and none beyond it.
func TestWideColors(t *testing.T) {
	t.Parallel()
	transform, err := icc.Parse(imagingtest.ICC("RGB ", "XYZ ", imagingtest.Display(imagingtest.P3, nil)...))
	imagingtest.Must(t, err)
	pix := []byte{234, 51, 35, 9, 255, 255, 255, 9, 0, 0, 0, 9, 255, 0, 0, 9}
	transform.Pixels(pix)
	if off := farthest(pix, []byte{255, 0, 0, 9, 255, 255, 255, 9, 0, 0, 0, 9, 255, 0, 0, 9}); off > 3 {
		t.Errorf("got %v", pix)
	}
}

// TestGreysOfPixels: equal red, green and blue stay equal under the primaries of sRGB, however a
// profile rounds them.
func TestGreysOfPixels(t *testing.T) {
	t.Parallel()
	old := icc.SRGB
	old.Gamma = 2.2
	display, err := old.Transform()
	imagingtest.Must(t, err)
	profile, err := icc.Parse(imagingtest.ICC("RGB ", "XYZ ", imagingtest.Display(imagingtest.SRGB, imagingtest.Gamma(1.8))...))
	imagingtest.Must(t, err)
	for _, transform := range []*icc.Transform{display, profile} {
		for v := range 256 {
			pix := []byte{byte(v), byte(v), byte(v), 1}
			transform.Pixels(pix)
			if pix[0] != pix[1] || pix[1] != pix[2] {
				t.Errorf("%d becomes %v", v, pix)
			}
		}
	}
}

// TestInk: colours of CMYK become opaque ones of sRGB.
func TestInk(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mft1", "mft2", "mAB "} {
		transform, err := icc.Parse(imagingtest.ICC("CMYK", "Lab ", imagingtest.Table(kind, 4, 9, imagingtest.Ink)))
		imagingtest.Must(t, err, kind)
		got, want := colors(), colors()
		for p := want; len(p) > 0; p = p[4:] {
			rgb := imagingtest.Ink([]float64{float64(p[0]) / 255, float64(p[1]) / 255, float64(p[2]) / 255, float64(p[3]) / 255})
			for i, v := range rgb {
				p[i] = byte(math.Round(255 * v))
			}
			p[3] = 255
		}
		transform.Pixels(got)
		if off := farthest(got, want); off > 12 {
			t.Errorf("%s: a colour is off by %d", kind, off)
		}
	}
}

// TestGrey: samples of grey become those of sRGB, alone and in pixels. Equal samples of an RGB
// profile are grey too.
func TestGrey(t *testing.T) {
	t.Parallel()
	for _, g := range []float64{1, 1.8, 2.2} {
		curve := imagingtest.Gamma(g)
		for space, profile := range map[string][]byte{
			"GRAY": imagingtest.ICC("GRAY", "XYZ ", imagingtest.Tag{Name: "kTRC", Data: curve}),
			"RGB ": imagingtest.ICC("RGB ", "XYZ ", imagingtest.Display(imagingtest.SRGB, curve)...),
		} {
			transform, err := icc.Parse(profile)
			imagingtest.Must(t, err)
			got, pixels, want := make([]byte, 256), bytes.Repeat([]byte{7}, 4*256), make([]byte, 256)
			for v := range got {
				got[v], want[v] = byte(v), byte(math.Round(255*srgb(math.Pow(float64(v)/255, g))))
				copy(pixels[4*v:], []byte{byte(v), byte(v), byte(v)})
			}
			transform.Grey(got)
			transform.Pixels(pixels)
			if off := farthest(got, want); off > 2 {
				t.Errorf("%s gamma %v: a grey is off by %d", space, g, off)
			}
			for v := range want {
				if p := pixels[4*v:][:4]; farthest(p, []byte{want[v], want[v], want[v], 7}) > 2 {
					t.Errorf("%s gamma %v: %d becomes %v, want %d", space, g, v, p, want[v])
				}
			}
		}
	}
}

// TestDamaged: a profile without a description of its colours is none.
func TestDamaged(t *testing.T) {
	t.Parallel()
	display := imagingtest.Display(imagingtest.SRGB, nil)
	table := imagingtest.Table("mft2", 3, 3, imagingtest.Code)
	cut := imagingtest.Tag{Name: table.Name, Data: table.Data[:len(table.Data)-1]}
	large := imagingtest.Tag{Name: table.Name, Data: bytes.Clone(table.Data)}
	large.Data[10] = 255
	flat := imagingtest.Tag{Name: table.Name, Data: bytes.Clone(table.Data)}
	flat.Data[10] = 1
	good := imagingtest.ICC("RGB ", "XYZ ", display...)
	for name, profile := range map[string][]byte{
		"nothing": nil, "a header": good[:128], "no signature": append(make([]byte, 128), good[128:]...),
		"cut": good[:len(good)-1], "another space": imagingtest.ICC("HSV ", "XYZ ", display...),
		"a matrix to Lab": imagingtest.ICC("RGB ", "Lab ", display...), "no blue": imagingtest.ICC("RGB ", "XYZ ", display[:4]...),
		"a cut table": imagingtest.ICC("RGB ", "Lab ", cut), "a huge table": imagingtest.ICC("RGB ", "Lab ", large),
		"a table of a point": imagingtest.ICC("RGB ", "Lab ", flat), "a table of CMYK": imagingtest.ICC("CMYK", "Lab ", table),
		"too large": imagingtest.Large(icc.MaxSize+4, "RGB ", "XYZ ", display...),
	} {
		_, err := icc.Parse(profile)
		imagingtest.Is(t, err, icc.ErrProfile, name)
	}
	_, err := icc.Parse(imagingtest.Large(icc.MaxSize, "RGB ", "XYZ ", display...))
	imagingtest.Must(t, err, "the largest")
}

// FuzzParse: no profile makes a panic.
func FuzzParse(f *testing.F) {
	for _, kind := range []string{"mft1", "mft2", "mAB "} {
		f.Add(imagingtest.ICC("RGB ", "Lab ", imagingtest.Table(kind, 3, 2, imagingtest.Code)))
		f.Add(imagingtest.ICC("CMYK", "XYZ ", imagingtest.Table(kind, 4, 2, imagingtest.Ink)))
	}
	f.Add(imagingtest.ICC("RGB ", "XYZ ", imagingtest.Display(imagingtest.P3, nil)...))
	f.Add(imagingtest.ICC("GRAY", "XYZ ", imagingtest.Tag{Name: "kTRC", Data: imagingtest.Gamma(1.8)}))
	f.Fuzz(func(t *testing.T, profile []byte) {
		transform, err := icc.Parse(profile)
		if err != nil {
			return
		}
		pix := []byte{0, 0, 0, 0, 255, 255, 255, 255, 1, 128, 254, 77}
		transform.Pixels(pix)
		transform.Grey(pix)
	})
}

// TestDisplay: colours of chromaticities and a gamma become those of sRGB.
func TestDisplay(t *testing.T) {
	t.Parallel()
	p3 := icc.SRGB
	p3.Red, p3.Green, p3.Blue = icc.Point{X: 0.68, Y: 0.32}, icc.Point{X: 0.265, Y: 0.69}, icc.Point{X: 0.15, Y: 0.06}
	linear := icc.SRGB
	linear.Gamma = 1
	for name, c := range map[string]struct {
		display icc.Display
		same    []imagingtest.Tag
	}{
		"sRGB":       {icc.SRGB, imagingtest.Display(imagingtest.SRGB, nil)},
		"linear":     {linear, imagingtest.Display(imagingtest.SRGB, imagingtest.Gamma(1))},
		"Display P3": {p3, imagingtest.Display(imagingtest.P3, nil)},
	} {
		transform, err := c.display.Transform()
		imagingtest.Must(t, err, name)
		profile, err := icc.Parse(imagingtest.ICC("RGB ", "XYZ ", c.same...))
		imagingtest.Must(t, err, name)
		got, want := colors(), colors()
		transform.Pixels(got)
		profile.Pixels(want)
		if off := farthest(got, want); off > 4 { // the profile has rounded numbers
			t.Errorf("%s: a colour is off by %d", name, off)
		}
	}
	for _, none := range []icc.Display{{}, {White: icc.SRGB.White, Red: icc.SRGB.Red, Green: icc.SRGB.Red, Blue: icc.SRGB.Red}} {
		_, err := none.Transform()
		imagingtest.Is(t, err, icc.ErrProfile)
	}
}
