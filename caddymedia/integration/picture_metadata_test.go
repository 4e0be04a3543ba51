package integration

import (
	"fmt"
	"strings"
	"testing"
)

// Metadata that cameras and programs write into pictures, and that must not become public.
const (
	secretDescription = "invented description"
	secretPlace       = "invented place"
	secretXMP         = "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta>invented XMP</x:xmpmeta>"
	secretComment     = "invented comment"
	secretCaption     = "Photoshop 3.0\x00invented caption"
	secretTail        = "invented tail"
)

var secrets = []string{"invented", "xmpmeta", "ns.adobe.com", "Photoshop"}

// talkative is a JPEG full of secrets.
func talkative(t *testing.T, orientation int) string {
	t.Helper()
	return withSegments(asJPEG(t, quartered(60, 40), 90),
		chunk{"\xe0", "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"},
		chunk{"\xe1", exif(orientation, secretDescription, secretPlace)},
		chunk{"\xe1", secretXMP}, chunk{"\xed", secretCaption}, chunk{"\xfe", secretComment}) + secretTail
}

// talkativePNG is a PNG full of secrets.
func talkativePNG(t *testing.T) string {
	t.Helper()
	still := asPNG(t, quartered(60, 40))
	const head = 8 + 25 // signature and IHDR
	return still[:head] + pngChunk("tEXt", "Comment\x00"+secretComment) +
		pngChunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+secretXMP) +
		pngChunk("eXIf", exif(1, secretDescription, secretPlace)[6:]) + pngChunk("tIME", "\x07\xe9\x01\x01\x01\x01\x01") +
		still[head:] + secretTail
}

// talkativeGIF is an animated GIF full of secrets.
func talkativeGIF(t *testing.T) string {
	t.Helper()
	g := movingGIF(t, 3)
	behind := 13
	if flags := g[10]; flags&0x80 != 0 {
		behind += 3 << (flags&7 + 1)
	}
	block := func(s string) string { return string(rune(len(s))) + s }
	return g[:behind] + "\x21\xfe" + block(secretComment) + "\x00" +
		"\x21\xff\x0bXMP DataXMP" + block("<x:xmpmeta>invented XMP</x:xmpmeta>") + "\x00" + g[behind:] + secretTail
}

// wantNoSecrets fails the test if a file contains the metadata above.
func wantNoSecrets(t *testing.T, what, file string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(file, secret) {
			t.Errorf("%s contains %q", what, secret)
		}
	}
}

// wantBare expects a stored picture to have only the parts needed to show it. Of Exif that is only
// the orientation, in 34 bytes.
func wantBare(t *testing.T, file string) {
	t.Helper()
	const orientationAlone = 6 + 34
	switch {
	case strings.HasPrefix(file, "\xff\xd8"):
		segments, pixels := jpegSegments(t, file)
		for _, s := range segments {
			exif := s.name == "\xe1" && strings.HasPrefix(s.data, "Exif\x00\x00") && len(s.data) <= orientationAlone
			profile := s.name == "\xe2" && strings.HasPrefix(s.data, "ICC_PROFILE\x00")
			needed := s.name < "\xe0" || s.name == "\xe0" || s.name == "\xee"
			if !exif && !profile && !needed {
				t.Errorf("a segment %x remains: %.60q", s.name, s.data)
			}
		}
		if !strings.HasSuffix(pixels, "\xff\xd9") {
			t.Errorf("behind the end are bytes: %q", pixels[len(pixels)-10:])
		}
	case strings.HasPrefix(file, "\x89PNG"):
		for _, c := range pngChunks(t, file) {
			if strings.Contains("tEXt zTXt iTXt tIME", c.name) || c.name == "eXIf" && len(c.data) > orientationAlone-6 {
				t.Errorf("a chunk %s remains: %.60q", c.name, c.data)
			}
		}
	}
}

// wantNoMetadata expects a variant to have neither Exif nor XMP.
func wantNoMetadata(t *testing.T, file string) {
	t.Helper()
	for _, c := range webpChunks(t, file) {
		if c.name == "EXIF" || c.name == "XMP " {
			t.Errorf("the variant has a chunk %s of %d bytes", c.name, len(c.data))
		}
	}
}

// TestMetadata: with strip_metadata a picture is stored without metadata and otherwise unchanged.
// Otherwise it is stored as sent. A variant never has metadata.
func TestMetadata(t *testing.T) {
	s := startSite(t, account+atRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias bare {\nwebp\nstrip_metadata on\n}\n"+
		"image_alias plain {\nstrip_metadata on\n}", "media")
	pictures := corpus(t, "orientation")
	if pictures == nil {
		pictures = map[string]string{}
	}
	for i := 1; i <= 8; i++ {
		pictures[fmt.Sprintf("drawn-%d.jpg", i)] = talkative(t, i)
	}
	pictures["drawn.png"], pictures["drawn.gif"] = talkativePNG(t), talkativeGIF(t)
	for name, content := range pictures {
		t.Run(name, func(t *testing.T) {
			upload := func(alias, content string) (picture, variant string) {
				one := s.uploadImage(t, field("alias", alias), file(name, content)).one(t)
				if alias != "plain" {
					variant = s.variant(t, one)
					wantNoMetadata(t, variant)
					wantNoSecrets(t, "a variant", variant)
				}
				return s.fetch(t, one.FullPath).body, variant
			}
			kept, keptVariant := upload("content", content)
			if kept != content {
				t.Errorf("%d bytes are stored, not the %d sent", len(kept), len(content))
			}
			bare, bareVariant := upload("bare", content)
			wantBare(t, bare)
			wantNoSecrets(t, "the picture", bare)
			if !samePixels(t, bare, content) {
				t.Error("the pixels have changed")
			}
			if bareVariant != keptVariant {
				t.Error("the variants differ")
			}
			if plain, _ := upload("plain", content); plain != bare {
				t.Error("without a variant another picture is stored")
			}
			again, againVariant := upload("bare", bare) // it looks as before
			if again != bare || againVariant != keptVariant {
				t.Error("uploaded again, it is another picture")
			}
		})
	}
}

// TestMetadataOfMovement: stripping metadata keeps the frames of an animated GIF.
func TestMetadataOfMovement(t *testing.T) {
	s := withVariants(t, "media", "strip_metadata on")
	one := s.uploadImage(t, file("a.gif", talkativeGIF(t))).one(t)
	if got := s.fetch(t, one.FullPath).body; got != movingGIF(t, 3) {
		t.Errorf("%d bytes are stored, not the %d of the GIF without comments", len(got), len(movingGIF(t, 3)))
	}
}
