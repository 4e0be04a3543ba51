package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// raceDetector reports that the build has the race detector, which is slow and needs memory.
var raceDetector bool

// withPictures returns a configuration with pictures at the root of the alias content, and binaries
// at the root of the alias small. limits are the lines of the block limits.
func withPictures(limits string) string {
	return "tokens memory\n" + account + `
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

// slowPicture takes an encoder several seconds at the effort of withPictures. It needs the memory
// of bigPicture.
var slowPicture = sync.OnceValue(func() string {
	if encoder, err := webp.New(); err == nil && !encoder.Stops() {
		return drawnJPEG(7200, 5000) // small is not so slow in Go
	}
	return drawnJPEG(6000, 4000)
})

const bigPicture = "image_memory 1GiB\n"

// patient are limits with which every variant is made, even on slow machines.
const patient = "image_wait 30m\nimage_time 10m\n"

func drawnJPEG(width, height int) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, photograph(width, height), &jpeg.Options{Quality: 80}); err != nil {
		panic(err) // it writes to memory
	}
	return b.String()
}

// pictureReply is an answer to an upload of pictures.
type pictureReply struct {
	childReply
	retryAfter string
	took       time.Duration
}

// busy reports whether the answer is a 503 of the documented form with Retry-After.
func (r pictureReply) busy() bool {
	seconds, err := strconv.Atoi(r.retryAfter)
	return r.status == http.StatusServiceUnavailable && err == nil && seconds > 0 && !r.Success && r.Message != ""
}

func pictureForm(name, content string) string {
	b, err := io.ReadAll(childForm("content", childPart{name, strings.NewReader(content)}))
	if err != nil {
		panic(err) // it reads from memory
	}
	return string(b)
}

// sendPicture uploads a form with pictures.
func (c *childClient) sendPicture(ctx context.Context, token string, body io.Reader) (r pictureReply, err error) {
	begin := time.Now()
	defer func() { r.took = time.Since(begin) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/upload/image", body)
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+childBoundary)
	req.Header["HTTP_SERVICE_API_KEY"] = []string{apiKey}
	req.Header["HTTP_SERVICE_ACCESS_TOKEN"] = []string{token}
	answer, err := c.Do(req)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	r.retryAfter = answer.Header.Get("Retry-After")
	r.childReply, err = parseChildReply(answer)
	return r, err
}

// pending is an upload of a picture in progress.
type pending struct {
	cancel context.CancelFunc
	done   chan struct{}
	answer pictureReply
	err    error
}

// beginPicture sends a picture and returns when it is being processed or waits in the queue.
func (c *child) beginPicture(t *testing.T, client *childClient, token, name, content string) *pending {
	t.Helper()
	before := c.pictures()
	ctx, cancel := context.WithCancel(t.Context())
	p := &pending{cancel: cancel, done: make(chan struct{})}
	form := pictureForm(name, content)
	sent := make(chan struct{})
	body := &endNotifier{Reader: strings.NewReader(form), end: sync.OnceFunc(func() { close(sent) })}
	go func() {
		defer close(p.done)
		p.answer, p.err = client.sendPicture(ctx, token, body)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
	})
	select {
	case <-sent:
	case <-p.done:
	}
	eventually(t, "the picture is taken in", func() bool { return c.pictures() > before || !p.going() })
	return p
}

// pictures returns how many pictures are being processed or waiting.
func (c *child) pictures() float64 {
	c.t.Helper()
	return c.metric("caddy_media_working_pictures") + c.metric("caddy_media_waiting_pictures")
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

// going reports whether the upload is still in progress.
func (p *pending) going() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// mustSucceed waits for the answer: the picture and its variant must be stored.
func (p *pending) mustSucceed(t *testing.T) {
	t.Helper()
	<-p.done
	if p.err != nil || p.answer.status != http.StatusOK || p.answer.Result[0].WebP != p.answer.Result[0].FullPath+".webp" {
		t.Errorf("after %v: %v %v", p.answer.took, p.answer, p.err)
	}
}

// mustHavePictures expects the folder to hold these pictures, each with its variant, and soon
// nothing else.
func (c *child) mustHavePictures(t *testing.T, names ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range names {
		want[name], want[name+".webp"] = true, true
	}
	var got []string
	eventually(t, fmt.Sprintf("the folder has nothing but %q (and now %q)", names, filesBelow(t, c.root)), func() bool {
		got = filesBelow(t, c.root)
		return len(got) == len(want)
	})
	for _, name := range got {
		if !want[filepath.Base(name)] {
			t.Errorf("the folder has %q, want %q and their variants", got, names)
		}
	}
}

// stopsEncoding reports whether the encoder of this build can be stopped.
func stopsEncoding(t *testing.T) bool {
	t.Helper()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	return encoder.Stops()
}
