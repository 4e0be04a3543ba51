package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestQueue: while one picture is processed and one waits, a third is refused; later there is room.
func TestQueue(t *testing.T) {
	c := newChild(t)
	c.start(withPictures("image_workers 1\nimage_queue 1\nimage_wait 5m\nimage_time 5m\n" + bigPicture))
	client := c.http1()
	token := client.mustLogin(t)
	large := drawnJPEG(1100, 1000)
	first := c.beginPicture(t, client, token, "first.jpg", slowPicture())
	second := c.beginPicture(t, client, token, "second.jpg", large)
	third, err := client.sendPicture(t.Context(), token, strings.NewReader(pictureForm("third.jpg", large)))
	if !first.going() || !second.going() {
		t.Fatal("the first two were done too soon to show anything")
	}
	if err != nil || !third.busy() {
		t.Errorf("the third is answered with %v %v, want 503 with Retry-After", third, err)
	}
	if len(third.Errors) != 1 || third.Errors[0].Filename != "third.jpg" {
		t.Errorf("errors %v, want one for third.jpg", third.Errors)
	}
	client.mustPut(t, token, "small", "meanwhile.bin", []byte("files do not wait"))
	if !first.going() {
		t.Error("the file waited for the pictures")
	}
	first.mustSucceed(t)
	second.mustSucceed(t)
	again, err := client.sendPicture(t.Context(), token, strings.NewReader(pictureForm("third.jpg", large)))
	if err != nil || again.status != http.StatusOK {
		t.Errorf("later: %v %v", again, err)
	}
}

// TestQueueTimeout: a picture that waited for image_wait is refused, and nothing is stored.
func TestQueueTimeout(t *testing.T) {
	c := newChild(t)
	c.start(withPictures("image_workers 1\nimage_wait 300ms\nimage_time 5m\n" + bigPicture))
	client := c.http1()
	token := client.mustLogin(t)
	small := pictureForm("second.jpg", drawnJPEG(64, 64))
	first := c.beginPicture(t, client, token, "first.jpg", slowPicture())
	second, err := client.sendPicture(t.Context(), token, strings.NewReader(small))
	if !first.going() {
		t.Fatal("the first was done too soon to show anything")
	}
	if err != nil || !second.busy() {
		t.Errorf("the second is answered with %v %v, want 503 with Retry-After", second, err)
	}
	if second.took < 300*time.Millisecond {
		t.Errorf("the second waited for %v", second.took)
	}
	first.mustSucceed(t)
	c.mustHavePictures(t, "first.jpg")
}

// TestEncoderTakesTooLong: if making a variant takes longer than image_time, the picture is stored
// without one.
func TestEncoderTakesTooLong(t *testing.T) {
	if !stopsEncoding(t) {
		t.Skip("the encoder of this build cannot be stopped")
	}
	c := newChild(t)
	c.start(withPictures("image_time 200ms\n" + bigPicture))
	client := c.http1()
	r, err := client.sendPicture(t.Context(), client.mustLogin(t), strings.NewReader(pictureForm("slow.jpg", slowPicture())))
	if err != nil || r.status != http.StatusOK || r.Result[0].WebP != "" {
		t.Fatalf("%v %v, want it to be stored without a variant", r, err)
	}
	mustHaveOnly(t, c.root, "pictures/slow.jpg")
	if got := c.metric("caddy_media_variants_total", `alias="content"`, `result="none"`); got != 1 {
		t.Errorf("%v are counted as without a variant", got)
	}
	if !strings.Contains(c.output(), "slow.jpg") {
		t.Error("the log does not mention it")
	}
}

// TestReloadWhileEncoding: an upload whose picture is processed during a reload succeeds, with its
// variant. The encoder is logged once, not at each reload.
func TestReloadWhileEncoding(t *testing.T) {
	c := newTLSChild(t)
	limits := "image_workers 3\n" + patient + bigPicture
	c.start(withPictures(limits))
	token := c.http1().mustLogin(t)
	clients := c.clients()
	uploads := make([]*pending, len(clients))
	for i, client := range clients {
		uploads[i] = c.beginPicture(t, client, token, "slow-"+client.version[5:6]+".jpg", slowPicture())
	}
	if !uploads[0].going() {
		t.Fatal("an upload was done too soon to show anything")
	}
	const named = `"msg":"WebP encoder"`
	for range 3 {
		c.loadOnly(strings.Replace(withPictures(limits), "webp 80 small", "cache_control no-store\nwebp 70 fast", 1))
		c.loadOnly(withPictures(limits))
	}
	if got := strings.Count(c.output(), named); got != 1 {
		t.Errorf("the encoder is named %d times, want once", got)
	}
	c.loadOnly(withPictures("image_workers 2\n" + patient + bigPicture)) // the next ones have another queue
	if !uploads[2].going() {
		t.Error("no upload was in progress during the reloads")
	}
	for _, u := range uploads {
		u.mustSucceed(t)
	}
	c.mustHavePictures(t, "slow-1.jpg", "slow-2.jpg", "slow-3.jpg")
	client := c.http1()
	r, err := client.sendPicture(t.Context(), token, strings.NewReader(pictureForm("after.jpg", drawnJPEG(64, 64))))
	if err != nil || r.status != http.StatusOK || r.Result[0].WebP == "" {
		t.Errorf("after the reloads: %v %v", r, err)
	}
}
