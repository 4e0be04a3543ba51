package pictures_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
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
	return sample.WithSegments(sample.EncodeJPEG(t, sample.Quartered(60, 40), 90),
		sample.Chunk{Name: "\xe0", Data: "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"},
		sample.Chunk{Name: "\xe1", Data: sample.Exif(orientation, secretDescription, secretPlace)},
		sample.Chunk{Name: "\xe1", Data: secretXMP}, sample.Chunk{Name: "\xed", Data: secretCaption}, sample.Chunk{Name: "\xfe", Data: secretComment}) + secretTail
}

// talkativePNG is a PNG full of secrets.
func talkativePNG(t *testing.T) string {
	t.Helper()
	still := sample.EncodePNG(t, sample.Quartered(60, 40))
	const head = 8 + 25 // signature and IHDR
	return still[:head] + sample.PNGChunk("tEXt", "Comment\x00"+secretComment) +
		sample.PNGChunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+secretXMP) +
		sample.PNGChunk("eXIf", sample.Exif(1, secretDescription, secretPlace)[6:]) + sample.PNGChunk("tIME", "\x07\xe9\x01\x01\x01\x01\x01") +
		still[head:] + secretTail
}

// talkativeGIF is an animated GIF full of secrets.
func talkativeGIF(t *testing.T) string {
	t.Helper()
	g := sample.MovingGIF(t, 3)
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
		segments, pixels := sample.JPEGSegments(t, file)
		for _, s := range segments {
			exif := s.Name == "\xe1" && strings.HasPrefix(s.Data, "Exif\x00\x00") && len(s.Data) <= orientationAlone
			profile := s.Name == "\xe2" && strings.HasPrefix(s.Data, "ICC_PROFILE\x00")
			needed := s.Name < "\xe0" || s.Name == "\xe0" || s.Name == "\xee"
			if !exif && !profile && !needed {
				t.Errorf("a segment %x remains: %.60q", s.Name, s.Data)
			}
		}
		if !strings.HasSuffix(pixels, "\xff\xd9") {
			t.Errorf("behind the end are bytes: %q", pixels[len(pixels)-10:])
		}
	case strings.HasPrefix(file, "\x89PNG"):
		for _, c := range sample.PNGChunks(t, file) {
			if strings.Contains("tEXt zTXt iTXt tIME", c.Name) || c.Name == "eXIf" && len(c.Data) > orientationAlone-6 {
				t.Errorf("a chunk %s remains: %.60q", c.Name, c.Data)
			}
		}
	}
}

// wantNoMetadata expects a variant to have neither Exif nor XMP.
func wantNoMetadata(t *testing.T, file string) {
	t.Helper()
	for _, c := range sample.WebPChunks(t, file) {
		if c.Name == "EXIF" || c.Name == "XMP " {
			t.Errorf("the variant has a chunk %s of %d bytes", c.Name, len(c.Data))
		}
	}
}

// TestMetadata: with strip_metadata a picture is stored without metadata and otherwise unchanged.
// Otherwise it is stored as sent. A variant never has metadata.
func TestMetadata(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias bare {\nwebp\nstrip_metadata on\n}\n"+
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
				one := s.UploadImage(t, site.Field("alias", alias), site.File(name, content)).One(t)
				if alias != "plain" {
					variant = fetchVariant(t, s, one)
					wantNoMetadata(t, variant)
					wantNoSecrets(t, "a variant", variant)
				}
				return s.Fetch(t, one.FullPath).Body, variant
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
	one := s.UploadImage(t, site.File("a.gif", talkativeGIF(t))).One(t)
	if got := s.Fetch(t, one.FullPath).Body; got != sample.MovingGIF(t, 3) {
		t.Errorf("%d bytes are stored, not the %d of the GIF without comments", len(got), len(sample.MovingGIF(t, 3)))
	}
}
