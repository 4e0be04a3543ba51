package render_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
)

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
		_, err := variantOf(s.t.Context(), s.m.For(owner), bytes.NewReader(file), info, render.Options{})
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

// TestSmallImagesPass: a small image waits for at most one large one of the same owner.
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
			t.Errorf("after %d large images", n)
		}
		s.end()
	})
}

// TestEncoderGivesWay: the time of an encoder is shortened only if an image waits.
func TestEncoderGivesWay(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	for name, c := range map[string]struct {
		others int
		want   time.Duration
	}{
		"alone":     {0, 20 * time.Second},
		"one waits": {1, 10 * time.Second},
		"many wait": {5, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, render.Limits{Workers: 1})
				start := time.Now()
				first := s.make("a", file, info)
				for range c.others {
					s.make("b", file, info)
				}
				if err := <-first; !errors.Is(err, render.ErrNone) || time.Since(start) != c.want {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				s.end()
			})
		})
	}
}
