package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ImageConfig returns a configuration with images at the root of the alias content, and binaries
// at the root of the alias small. limits are the lines of the block limits.
func ImageConfig(limits string) string {
	return "tokens memory\n" + Account + `
storage keep {
	driver local $ROOT
	sub_folder_format /
}
image_alias content {
	storage keep
	prefix pictures
	webp 80 small
}
file_alias small {
	storage keep
	prefix small
	extensions bin
}
limits {
` + limits + `
}
`
}

// BigImage is the limit that admits sample.SlowImage.
const BigImage = "image_memory 1GiB\n"

// PatientLimits are limits with which every variant is made, even on slow machines.
const PatientLimits = "image_wait 30m\nimage_time 10m\n"

// ImageForm returns a form with one image for the alias content.
func ImageForm(name, content string) string {
	b, err := io.ReadAll(StreamForm("content", StreamPart{name, strings.NewReader(content)}))
	if err != nil {
		panic(err) // it reads from memory
	}
	return string(b)
}

// PendingImage is an upload of an image in progress.
type PendingImage struct {
	Cancel context.CancelFunc
	Done   chan struct{}
	Answer Answer
	Err    error
}

// BeginImage sends an image and returns when it is being processed or waits in the queue.
func (c *Child) BeginImage(t *testing.T, client *Client, token, name, content string) *PendingImage {
	t.Helper()
	before := c.Images()
	ctx, cancel := context.WithCancel(t.Context())
	p := &PendingImage{Cancel: cancel, Done: make(chan struct{})}
	form := ImageForm(name, content)
	sent := make(chan struct{})
	body := &endNotifier{Reader: strings.NewReader(form), end: sync.OnceFunc(func() { close(sent) })}
	go func() {
		defer close(p.Done)
		p.Answer, p.Err = client.Send(ctx, token, "image", body)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.Done
	})
	select {
	case <-sent:
	case <-p.Done:
	}
	Eventually(t, "the image is taken in", func() bool { return c.Images() > before || !p.Going() })
	return p
}

// Images returns how many images are being processed or waiting.
func (c *Child) Images() float64 {
	c.T.Helper()
	return c.Metric("caddy_media_working_images") + c.Metric("caddy_media_waiting_images")
}

// endNotifier is a reader that reports its end.
type endNotifier struct {
	io.Reader
	end func()
}

func (r *endNotifier) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		r.end()
	}
	return n, err
}

// Going reports whether the upload is still in progress.
func (p *PendingImage) Going() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// MustSucceed waits for the answer: the image and its variant must be stored.
func (p *PendingImage) MustSucceed(t *testing.T) {
	t.Helper()
	<-p.Done
	if p.Err != nil || p.Answer.Status != http.StatusOK || p.Answer.Result[0].WebP != p.Answer.Result[0].FullPath+".webp" {
		t.Errorf("after %v: %v %v", p.Answer.Took, p.Answer, p.Err)
	}
}

// MustHaveImages expects the folder to hold these images, each with its variant, and soon
// nothing else.
func (c *Child) MustHaveImages(t *testing.T, names ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range names {
		want[name], want[name+".webp"] = true, true
	}
	var got []string
	Eventually(t, fmt.Sprintf("the folder has nothing but %q (and now %q)", names, FilesBelow(t, c.Root)), func() bool {
		got = FilesBelow(t, c.Root)
		return len(got) == len(want)
	})
	for _, name := range got {
		if !want[filepath.Base(name)] {
			t.Errorf("the folder has %q, want %q and their variants", got, names)
		}
	}
}
