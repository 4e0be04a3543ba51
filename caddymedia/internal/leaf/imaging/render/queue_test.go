package render_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// busy starts n variants of an image. The encoder continues when goOn is closed.
func busy(t *testing.T, r *recorder, m *render.Maker, n int) (results chan error, goOn chan struct{}) {
	t.Helper()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	results, goOn = make(chan error, n), make(chan struct{})
	r.before = func(ctx context.Context) error {
		r.inside.Add(1)
		defer r.inside.Add(-1)
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for range n {
		go func() {
			_, err := variantOf(t.Context(), m, bytes.NewReader(file), info, render.Options{})
			results <- err
		}()
	}
	return results, goOn
}

func TestQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		m := render.NewMaker(r, render.Limits{Workers: 2, Queue: 3, Wait: time.Minute})
		const waiting = 3
		results, goOn := busy(t, r, m, 2+waiting+2)
		synctest.Wait()
		if m.Waiting() != waiting || m.Working() != 2 {
			t.Errorf("%d waiting and %d working, want %d and 2", m.Waiting(), m.Working(), waiting)
		}
		for range 2 { // more than the queue holds
			imagingtest.Is(t, <-results, render.ErrBusy, "one too many")
		}
		close(goOn)
		for range 2 + waiting {
			imagingtest.Is(t, <-results, nil, "one that waited")
		}
		if m.Waiting() != 0 || m.Working() != 0 {
			t.Errorf("%d waiting and %d working in the end", m.Waiting(), m.Working())
		}
	})
}

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		r := &recorder{before: func(context.Context) error { <-goOn; return nil }} // it cannot be stopped
		m := render.NewMaker(r, render.Limits{Workers: 1, Wait: 5 * time.Second, Time: time.Hour})
		results := make(chan error)
		start := time.Now()
		for range 2 {
			go func() {
				_, err := variantOf(t.Context(), m, bytes.NewReader(file), info, render.Options{})
				results <- err
			}()
		}
		imagingtest.Is(t, <-results, render.ErrBusy, "it waited too long")
		imagingtest.Equal(t, time.Since(start), 5*time.Second, "after")
		close(goOn)
		imagingtest.Is(t, <-results, nil, "the other")
	})
}

// TestMemory: two images whose memory fits run together, and the third one after them.
func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{memory: 100}
		const each = 40 * 30 * (100 + 2)
		m := render.NewMaker(r, render.Limits{Workers: 3, Memory: 2*each + each/2, Wait: time.Minute})
		results, goOn := busy(t, r, m, 3)
		synctest.Wait()
		imagingtest.Equal(t, r.inside.Load(), 2, "working")
		for range 2 {
			goOn <- struct{}{}
		}
		if a, b := <-results, <-results; a != nil || b != nil {
			t.Errorf("the first two: %v, %v", a, b)
		}
		close(goOn)
		imagingtest.Is(t, <-results, nil, "the third")
	})
}

func TestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		m := render.NewMaker(r, render.Limits{Time: 3 * time.Second})
		m.Clock = render.Elapsed
		start := time.Now()
		results, _ := busy(t, r, m, 1)
		if err := <-results; !errors.Is(err, render.ErrNone) || !errors.Is(err, render.ErrTime) || time.Since(start) != 3*time.Second {
			t.Errorf("an encoder that does not end: %v after %v", err, time.Since(start))
		}
	})
}

// TestLeave: a caller that leaves, while waiting or during processing, frees the slot.
func TestLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(recorder)
		m := render.NewMaker(r, render.Limits{Workers: 1})
		file := asJPEG(t, scene(40, 30))
		info := checked(t, file, "jpg")
		var running atomic.Int32
		r.before = func(ctx context.Context) error {
			running.Add(1)
			<-ctx.Done()
			running.Add(-1)
			return context.Cause(ctx)
		}
		ctx, leave := context.WithCancel(t.Context())
		results := make(chan error)
		for range 3 {
			go func() {
				_, err := variantOf(ctx, m, bytes.NewReader(file), info, render.Options{})
				results <- err
			}()
		}
		synctest.Wait()
		if running.Load() != 1 || m.Waiting() != 2 {
			t.Fatalf("%d working, %d waiting", running.Load(), m.Waiting())
		}
		leave()
		for range 3 {
			if err := <-results; !errors.Is(err, context.Canceled) || errors.Is(err, render.ErrNone) {
				t.Errorf("one who left: %v", err)
			}
		}
		r.before = nil
		_, err := variantOf(t.Context(), m, bytes.NewReader(file), info, render.Options{})
		imagingtest.Is(t, err, nil, "the next")
	})
}

// TestLosslessMemory: a large drawing is encoded losslessly only with enough memory, and never with
// more than the limit.
func TestLosslessMemory(t *testing.T) {
	t.Parallel()
	drawing := image.NewNRGBA(image.Rect(0, 0, 100, 100))
	file := asPNG(t, drawing)
	const lossless = 100 * 100 * (40 + 8)
	for _, c := range []struct {
		name   string
		memory int64
		want   int // encodings
	}{
		{"enough for all", 2 * lossless, 2},
		{"enough for one", lossless, 2},
		{"not enough", lossless - 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{memory: 4}
			m := render.NewMaker(r, render.Limits{Workers: 2, Memory: c.memory})
			_, err := variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, "png"), render.Options{})
			imagingtest.Must(t, err)
			imagingtest.Equal(t, len(r.still), c.want, "encoded", "times")
			// All of the memory is available again.
			_, err = variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, "png"), render.Options{})
			imagingtest.Is(t, err, nil, "the next")
		})
	}
}

func TestTooMuchMemory(t *testing.T) {
	t.Parallel()
	file := asPNG(t, scene(100, 100))
	info := checked(t, file, "png")
	small := render.NewMaker(&recorder{memory: 100}, render.Limits{Memory: 100 * 100 * 5})
	_, err := variantOf(t.Context(), small, bytes.NewReader(file), info, render.Options{})
	imagingtest.Is(t, err, render.ErrNone, "an image that can only be decoded")
	imagingtest.Is(t, small.Check(t.Context(), bytes.NewReader(file), info), nil, "decoding it")
	tiny := render.NewMaker(new(recorder), render.Limits{Memory: 100})
	for name, err := range map[string]error{
		"checking": tiny.Check(t.Context(), bytes.NewReader(file), info),
		"making": func() error {
			_, err := variantOf(t.Context(), tiny, bytes.NewReader(file), info, render.Options{})
			return err
		}(),
	} {
		if _, ok := errors.AsType[*imaging.TooLargeError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	wide := asPNG(t, image.NewGray(image.Rect(0, 0, 16384, 1)))
	apng := asPNG(t, scene(5, 5))
	control := []byte("acTL\x00\x00\x00\x01\x00\x00\x00\x00")
	chunk := binary.BigEndian.AppendUint32(append([]byte("\x00\x00\x00\x08"), control...), crc32.ChecksumIEEE(control))
	apng = slices.Insert(apng, 33, chunk...) // behind the header
	video := "cICP\x09\x10\x00\x01"
	video = "\x00\x00\x00\x04" + video + string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(video))))
	colored := slices.Insert(asPNG(t, scene(5, 5)), 33, []byte(video)...)
	for name, file := range map[string][]byte{"too wide": wide, "an animated PNG": apng, "colours of video": colored} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := render.NewMaker(new(recorder), render.Limits{})
			_, err := variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, "png"), render.Options{})
			imagingtest.Is(t, err, render.ErrNone)
		})
	}
}

// TestPanic: a panic in a decoder or encoder must neither end the process nor keep its slot.
func TestPanic(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	r := new(recorder)
	m := render.NewMaker(r, render.Limits{Workers: 1})
	for range 3 {
		imagingtest.Is(t, m.Check(t.Context(), panics{bytes.NewReader(file)}, info), render.ErrPanic, "decoding")
		_, err := variantOf(t.Context(), m, panics{bytes.NewReader(file)}, info, render.Options{})
		if !errors.Is(err, render.ErrPanic) || errors.Is(err, render.ErrNone) {
			t.Errorf("decoding for a variant: %v", err)
		}
		r.before = func(context.Context) error { panic("no idea") }
		_, err = variantOf(t.Context(), m, bytes.NewReader(file), info, render.Options{})
		imagingtest.Is(t, err, render.ErrNone, "encoding")
	}
}

// panics makes a decoder panic when it reads.
type panics struct{ io.ReadSeeker }

func (panics) Read([]byte) (int, error) { panic("no idea") }

// slow has a Maker whose encoder works until it is released or stopped.
type slow struct {
	t    *testing.T
	m    *render.Maker
	goOn chan struct{}
}

func newSlow(t *testing.T, limits render.Limits) *slow {
	s := &slow{t: t, goOn: make(chan struct{})}
	s.m = render.NewMaker(&recorder{before: func(ctx context.Context) error {
		select {
		case <-s.goOn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}, limits)
	return s
}

// make starts the variant of an image for an owner.
func (s *slow) make(owner string, file []byte, info imaging.Info) chan error {
	result := make(chan error, 1)
	go func() {
		_, err := variantOf(s.t.Context(), s.m.For(queue.Party{Owner: owner}), bytes.NewReader(file), info, render.Options{})
		result <- err
	}()
	synctest.Wait()
	return result
}

// positionOf returns the number of encoders that end before result arrives, its own included.
func (s *slow) positionOf(result chan error) int {
	for n := 0; ; n++ {
		goOn := s.goOn
		if len(result) > 0 {
			goOn = nil // no other encoder ends
		}
		select {
		case err := <-result:
			if err != nil {
				s.t.Error(err)
			}
			return n
		case goOn <- struct{}{}:
			synctest.Wait()
		}
	}
}

func (s *slow) end() {
	close(s.goOn)
	synctest.Wait()
}

// TestOwnersTakeTurns: the images of one owner fill the queue. Those of another owner neither
// wait behind them nor are refused.
func TestOwnersTakeTurns(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, render.Limits{Workers: 1, Queue: 10})
		for range 60 {
			s.make("a", file, info)
		}
		if n := s.positionOf(s.make("b", file, info)); n > 3 {
			t.Errorf("after %d images of another owner", n)
		}
		s.end()
	})
}

// TestSmallImagesPass: a small image takes turns with the large ones of the same owner.
func TestSmallImagesPass(t *testing.T) {
	t.Parallel()
	file, large := asJPEG(t, scene(40, 30)), asJPEG(t, image.NewGray(image.Rect(0, 0, 1025, 1024)))
	info, largeInfo := checked(t, file, "jpg"), checked(t, large, "jpg")
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, render.Limits{Workers: 1, Queue: 10})
		for range 6 {
			s.make("a", large, largeInfo)
		}
		if n := s.positionOf(s.make("a", file, info)); n > 3 {
			t.Errorf("after %d images", n)
		}
		s.end()
	})
}
