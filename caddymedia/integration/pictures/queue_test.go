package pictures_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestQueue: while one picture is processed and one waits, a third is refused; later there is room.
func TestQueue(t *testing.T) {
	c := site.NewChild(t)
	c.Start(site.PictureConfig("image_workers 1\nimage_queue 1\nimage_wait 5m\nimage_time 5m\n" + site.BigPicture))
	client := c.HTTP1()
	token := client.MustLogin(t)
	large := sample.PhotoJPEG(1100, 1000)
	first := c.BeginPicture(t, client, token, "first.jpg", sample.SlowPicture())
	second := c.BeginPicture(t, client, token, "second.jpg", large)
	third, err := client.SendPicture(t.Context(), token, strings.NewReader(site.PictureForm("third.jpg", large)))
	if !first.Going() || !second.Going() {
		t.Fatal("the first two were done too soon to show anything")
	}
	if err != nil || !third.Busy() {
		t.Errorf("the third is answered with %v %v, want 503 with Retry-After", third, err)
	}
	if len(third.Errors) != 1 || third.Errors[0].Filename != "third.jpg" {
		t.Errorf("errors %v, want one for third.jpg", third.Errors)
	}
	client.MustPut(t, token, "small", "meanwhile.bin", []byte("files do not wait"))
	if !first.Going() {
		t.Error("the file waited for the pictures")
	}
	first.MustSucceed(t)
	second.MustSucceed(t)
	again, err := client.SendPicture(t.Context(), token, strings.NewReader(site.PictureForm("third.jpg", large)))
	if err != nil || again.Status != http.StatusOK {
		t.Errorf("later: %v %v", again, err)
	}
}

// TestQueueTimeout: a picture that waited for image_wait is refused, and nothing is stored.
func TestQueueTimeout(t *testing.T) {
	c := site.NewChild(t)
	c.Start(site.PictureConfig("image_workers 1\nimage_wait 300ms\nimage_time 5m\n" + site.BigPicture))
	client := c.HTTP1()
	token := client.MustLogin(t)
	large := site.PictureForm("second.jpg", sample.PhotoJPEG(1100, 1000)) // a small one would pass
	first := c.BeginPicture(t, client, token, "first.jpg", sample.SlowPicture())
	second, err := client.SendPicture(t.Context(), token, strings.NewReader(large))
	if !first.Going() {
		t.Fatal("the first was done too soon to show anything")
	}
	if err != nil || !second.Busy() {
		t.Errorf("the second is answered with %v %v, want 503 with Retry-After", second, err)
	}
	if second.Took < 300*time.Millisecond {
		t.Errorf("the second waited for %v", second.Took)
	}
	first.MustSucceed(t)
	c.MustHavePictures(t, "first.jpg")
}

// TestEncoderTakesTooLong: if making a variant takes longer than image_time, the picture is stored
// without one.
func TestEncoderTakesTooLong(t *testing.T) {
	if !site.StopsEncoding(t) {
		t.Skip("the encoder of this build cannot be stopped")
	}
	c := site.NewChild(t)
	c.Start(site.PictureConfig("image_time 200ms\n" + site.BigPicture))
	client := c.HTTP1()
	r, err := client.SendPicture(t.Context(), client.MustLogin(t), strings.NewReader(site.PictureForm("slow.jpg", sample.SlowPicture())))
	if err != nil || r.Status != http.StatusOK || r.Result[0].WebP != "" {
		t.Fatalf("%v %v, want it to be stored without a variant", r, err)
	}
	site.MustHaveOnly(t, c.Root, "pictures/slow.jpg")
	if got := c.Metric("caddy_media_variants_total", `alias="content"`, `result="none"`); got != 1 {
		t.Errorf("%v are counted as without a variant", got)
	}
	if !strings.Contains(c.Output(), "slow.jpg") {
		t.Error("the log does not mention it")
	}
}

// TestReloadWhileEncoding: an upload whose picture is processed during a reload succeeds, with its
// variant. The encoder is logged once, not at each reload.
func TestReloadWhileEncoding(t *testing.T) {
	c := site.NewTLSChild(t)
	limits := "image_workers 3\n" + site.PatientLimits + site.BigPicture
	c.Start(site.PictureConfig(limits))
	token := c.HTTP1().MustLogin(t)
	clients := c.Clients()
	uploads := make([]*site.PendingPicture, len(clients))
	for i, client := range clients {
		uploads[i] = c.BeginPicture(t, client, token, "slow-"+client.Version[5:6]+".jpg", sample.SlowPicture())
	}
	if !uploads[0].Going() {
		t.Fatal("an upload was done too soon to show anything")
	}
	const named = `"msg":"WebP encoder"`
	for range 3 {
		c.LoadOnly(strings.Replace(site.PictureConfig(limits), "webp 80 small", "cache_control no-store\nwebp 70 fast", 1))
		c.LoadOnly(site.PictureConfig(limits))
	}
	if got := strings.Count(c.Output(), named); got != 1 {
		t.Errorf("the encoder is named %d times, want once", got)
	}
	c.LoadOnly(site.PictureConfig("image_workers 2\n" + site.PatientLimits + site.BigPicture)) // the next ones have another queue
	if !uploads[2].Going() {
		t.Error("no upload was in progress during the reloads")
	}
	for _, u := range uploads {
		u.MustSucceed(t)
	}
	c.MustHavePictures(t, "slow-1.jpg", "slow-2.jpg", "slow-3.jpg")
	client := c.HTTP1()
	r, err := client.SendPicture(t.Context(), token, strings.NewReader(site.PictureForm("after.jpg", sample.PhotoJPEG(64, 64))))
	if err != nil || r.Status != http.StatusOK || r.Result[0].WebP == "" {
		t.Errorf("after the reloads: %v %v", r, err)
	}
}
