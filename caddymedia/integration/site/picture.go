package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
)

// PictureConfig returns a configuration with pictures at the root of the alias content, and binaries
// at the root of the alias small. limits are the lines of the block limits.
func PictureConfig(limits string) string {
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

// BigPicture is the limit that admits sample.SlowPicture.
const BigPicture = "image_memory 1GiB\n"

// PatientLimits are limits with which every variant is made, even on slow machines.
const PatientLimits = "image_wait 30m\nimage_time 10m\n"

// PictureAnswer is an answer to an upload of pictures.
type PictureAnswer struct {
	Answer
	RetryAfter string
	Took       time.Duration
}

// Busy reports whether the answer is a 503 of the documented form with Retry-After.
func (r PictureAnswer) Busy() bool {
	seconds, err := strconv.Atoi(r.RetryAfter)
	return r.Status == http.StatusServiceUnavailable && err == nil && seconds > 0 && !r.Success && r.Message != ""
}

// PictureForm returns a form with one picture for the alias content.
func PictureForm(name, content string) string {
	b, err := io.ReadAll(StreamForm("content", StreamPart{name, strings.NewReader(content)}))
	if err != nil {
		panic(err) // it reads from memory
	}
	return string(b)
}

// SendPicture uploads a form with pictures.
func (c *Client) SendPicture(ctx context.Context, token string, body io.Reader) (r PictureAnswer, err error) {
	begin := time.Now()
	defer func() { r.Took = time.Since(begin) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/api/upload/image", body)
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+StreamBoundary)
	req.Header["HTTP_SERVICE_API_KEY"] = []string{APIKey}
	req.Header["HTTP_SERVICE_ACCESS_TOKEN"] = []string{token}
	answer, err := c.Do(req)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	r.RetryAfter = answer.Header.Get("Retry-After")
	r.Answer, err = parseChildReply(answer)
	return r, err
}

// PendingPicture is an upload of a picture in progress.
type PendingPicture struct {
	Cancel context.CancelFunc
	Done   chan struct{}
	Answer PictureAnswer
	Err    error
}

// BeginPicture sends a picture and returns when it is being processed or waits in the queue.
func (c *Child) BeginPicture(t *testing.T, client *Client, token, name, content string) *PendingPicture {
	t.Helper()
	before := c.Pictures()
	ctx, cancel := context.WithCancel(t.Context())
	p := &PendingPicture{Cancel: cancel, Done: make(chan struct{})}
	form := PictureForm(name, content)
	sent := make(chan struct{})
	body := &endNotifier{Reader: strings.NewReader(form), end: sync.OnceFunc(func() { close(sent) })}
	go func() {
		defer close(p.Done)
		p.Answer, p.Err = client.SendPicture(ctx, token, body)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.Done
	})
	select {
	case <-sent:
	case <-p.Done:
	}
	Eventually(t, "the picture is taken in", func() bool { return c.Pictures() > before || !p.Going() })
	return p
}

// Pictures returns how many pictures are being processed or waiting.
func (c *Child) Pictures() float64 {
	c.T.Helper()
	return c.Metric("caddy_media_working_pictures") + c.Metric("caddy_media_waiting_pictures")
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
func (p *PendingPicture) Going() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// MustSucceed waits for the answer: the picture and its variant must be stored.
func (p *PendingPicture) MustSucceed(t *testing.T) {
	t.Helper()
	<-p.Done
	if p.Err != nil || p.Answer.Status != http.StatusOK || p.Answer.Result[0].WebP != p.Answer.Result[0].FullPath+".webp" {
		t.Errorf("after %v: %v %v", p.Answer.Took, p.Answer, p.Err)
	}
}

// MustHavePictures expects the folder to hold these pictures, each with its variant, and soon
// nothing else.
func (c *Child) MustHavePictures(t *testing.T, names ...string) {
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

// StopsEncoding reports whether the encoder of this build can be stopped.
func StopsEncoding(t *testing.T) bool {
	t.Helper()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	return encoder.Stops()
}
