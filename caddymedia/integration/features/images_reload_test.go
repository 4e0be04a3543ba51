package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestReloadWhileEncoding: an upload whose image is processed during a reload succeeds, with its
// variant. The encoder is logged once, not at each reload.
func TestReloadWhileEncoding(t *testing.T) {
	c := site.NewTLSChild(t)
	limits := "image_workers 3\n" + site.PatientLimits + site.BigImage
	c.Start(site.ImageConfig(limits))
	token := c.HTTP1().MustLogin(t)
	clients := c.Clients()
	uploads := make([]*site.PendingImage, len(clients))
	photo := sample.PhotoJPEG(6000, 4000) // it takes seconds, the reloads take tenths of them
	for i, client := range clients {
		uploads[i] = c.BeginImage(t, client, token, "slow-"+client.Version[5:6]+".jpg", photo)
	}
	const named = `"msg":"WebP encoder"`
	for range 2 {
		c.LoadOnly(strings.Replace(site.ImageConfig(limits), "webp 80 small", "cache_control no-store\nwebp 70 fast", 1))
		if !uploads[0].Going() {
			t.Fatal("an upload was done too soon to show anything")
		}
		c.LoadOnly(site.ImageConfig(limits))
	}
	if got := strings.Count(c.Output(), named); got != 1 {
		t.Errorf("the encoder is named %d times, want once", got)
	}
	c.LoadOnly(site.ImageConfig("image_workers 2\n" + site.PatientLimits + site.BigImage)) // the next ones have another queue
	if !uploads[2].Going() {
		t.Error("no upload was in progress during the reloads")
	}
	for _, u := range uploads {
		u.MustSucceed(t)
	}
	c.MustHaveImages(t, "slow-1.jpg", "slow-2.jpg", "slow-3.jpg")
	client := c.HTTP1()
	r, err := client.SendImage(t.Context(), token, strings.NewReader(site.ImageForm("after.jpg", sample.PhotoJPEG(64, 64))))
	if err != nil || r.Status != http.StatusOK || r.Result[0].WebP == "" {
		t.Errorf("after the reloads: %v %v", r, err)
	}
}
