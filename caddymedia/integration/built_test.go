package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuiltCaddy makes variants with the Caddy in MEDIA_TEST_CADDY, for example built by xcaddy,
// with the encoder MEDIA_TEST_ENCODER. By default it uses the Caddy of the tests.
func TestBuiltCaddy(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start(withPictures(""))
	client := c.http1()
	token := client.mustLogin(t)
	for name, file := range map[string]string{
		"photo.jpg": drawnJPEG(641, 480), "drawing.png": asPNG(t, quartered(65, 48)), "moving.gif": movingGIF(t, 4),
	} {
		answer, err := client.sendPicture(t.Context(), token, strings.NewReader(pictureForm(name, file)))
		if err != nil || answer.status != http.StatusOK || !strings.HasSuffix(answer.Result[0].WebP, name+".webp") {
			t.Errorf("%s: %v %v", name, answer, err)
			continue
		}
		variant, err := os.ReadFile(filepath.Join(c.root, "pictures", name+".webp"))
		if err != nil {
			t.Error(err)
			continue
		}
		if want := map[string]int{"moving.gif": 4}[name]; webpFeatures(t, string(variant)).FrameCount < want {
			t.Errorf("the variant of %s has %+v", name, webpFeatures(t, string(variant)))
		}
	}
	if encoder := os.Getenv("MEDIA_TEST_ENCODER"); !strings.Contains(c.output(), encoder) {
		t.Errorf("its encoder is not %s", encoder)
	}
}
