package features_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestBuiltCaddy makes variants with the Caddy in MEDIA_TEST_CADDY, for example built by xcaddy,
// with the encoder MEDIA_TEST_ENCODER. By default it uses the Caddy of the tests.
func TestBuiltCaddy(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(site.ImageConfig(""))
	client := c.HTTP1()
	token := client.MustLogin(t)
	for name, file := range map[string]string{
		"photo.jpg": sample.PhotoJPEG(641, 480), "drawing.png": sample.EncodePNG(t, sample.Quartered(65, 48)), "moving.gif": sample.MovingGIF(t, 4),
	} {
		answer, err := client.SendImage(t.Context(), token, strings.NewReader(site.ImageForm(name, file)))
		if err != nil || answer.Status != http.StatusOK || !strings.HasSuffix(answer.Result[0].WebP, name+".webp") {
			t.Errorf("%s: %v %v", name, answer, err)
			continue
		}
		variant, err := os.ReadFile(filepath.Join(c.Root, "pictures", name+".webp"))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := map[string]int{"moving.gif": 4}[name]; sample.WebPFeatures(t, string(variant)).FrameCount < want {
			t.Errorf("the variant of %s has %+v", name, sample.WebPFeatures(t, string(variant)))
		}
	}
	if encoder := os.Getenv("MEDIA_TEST_ENCODER"); !strings.Contains(c.Output(), encoder) {
		t.Errorf("its encoder is not %s", encoder)
	}
}
