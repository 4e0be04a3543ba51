package render_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// lazy is a reader that takes long.
type lazy struct{ *bytes.Reader }

func (l lazy) Read(p []byte) (int, error) {
	time.Sleep(11 * time.Second)
	return l.Reader.Read(p[:min(len(p), 100)])
}

// TestDecodingTime: a picture that takes too long to be decoded is refused, however short the time of
// an encoder is.
func TestDecodingTime(t *testing.T) {
	t.Parallel()
	file := asPNG(t, scene(40, 30))
	info := checked(t, file, "png")
	synctest.Test(t, func(t *testing.T) {
		m := render.NewMaker(new(recorder), render.Limits{Time: time.Nanosecond})
		_, makeErr := m.Make(t.Context(), lazy{bytes.NewReader(file)}, info, render.Variant(render.Options{}))
		for _, err := range []error{m.Check(t.Context(), lazy{bytes.NewReader(file)}, info), makeErr} {
			if large, ok := errors.AsType[*imaging.TooLargeError](err); !ok || !strings.Contains(large.Message, "takes too long") {
				t.Errorf("error %v", err)
			}
		}
		if err := m.Check(t.Context(), bytes.NewReader(file), info); err != nil {
			t.Errorf("in time: %v", err)
		}
	})
}

// TestTimeOfOutputs: each output has the whole time, so that slow renditions cost no variant.
func TestTimeOfOutputs(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{before: func(context.Context) error { time.Sleep(2 * time.Second); return nil }}
		m := render.NewMaker(r, render.Limits{Time: 3 * time.Second})
		outputs := []render.Output{render.Variant(render.Options{})}
		for width := 10; width <= 30; width += 10 {
			outputs = append(outputs, render.Output{Format: imaging.WebP, Box: scale.Box{Width: width}, FirstFrame: true})
		}
		made, err := m.Make(t.Context(), bytes.NewReader(file), info, outputs...)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range made {
			if o.Err != nil {
				t.Errorf("output %d: %v", i, o.Err)
			}
		}
	})
}

// TestTimeOfContendedOutputs: while other pictures wait, many renditions of one picture are left for
// later, but not its variant.
func TestTimeOfContendedOutputs(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{before: func(context.Context) error { time.Sleep(6 * time.Second); return nil }}
		m := render.NewMaker(r, render.Limits{Workers: 1})
		outputs := []render.Output{render.Variant(render.Options{})}
		for width := 10; width <= 30; width += 5 {
			outputs = append(outputs, render.Output{Format: imaging.WebP, Box: scale.Box{Width: width}, FirstFrame: true})
		}
		waited := make(chan error, 1)
		go func() {
			time.Sleep(time.Second)
			waited <- m.Check(t.Context(), bytes.NewReader(file), info)
		}()
		made, err := m.Make(t.Context(), bytes.NewReader(file), info, outputs...)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range made { // 12 seconds for two renditions
			if late := i > 2; errors.Is(o.Err, render.ErrBusy) != late || (o.File == nil) != late {
				t.Errorf("output %d: %d bytes, %v", i, len(o.File), o.Err)
			}
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}

// stuck is a recorder whose animations do not end.
type stuck struct{ recorder }

func (*stuck) Animate(ctx context.Context, a webp.Animation, _ webp.Options) ([]byte, error) {
	for range a.Frames {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return nil, errors.New("no frames")
}

// TestTimeOfAnimation: a rendition of an animation that takes too long is its first frame. A
// variant is always animated.
func TestTimeOfAnimation(t *testing.T) {
	t.Parallel()
	file := asGIF(t, words("RRRR", "GGGG", "BBBB"))
	info := checked(t, file, "gif")
	synctest.Test(t, func(t *testing.T) {
		e := new(stuck)
		m := render.NewMaker(e, render.Limits{Time: 3 * time.Second})
		rendition := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 4}, FirstFrame: true}
		made, err := m.Make(t.Context(), bytes.NewReader(file), info, rendition, render.Variant(render.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if made[0].Err != nil || len(made[0].File) == 0 || len(e.still) == 0 || word(e.still[0].(*image.NRGBA)) != "RRRR" {
			t.Errorf("the rendition: %v, of %d still pictures", made[0].Err, len(e.still))
		}
		if !errors.Is(made[1].Err, render.ErrNone) {
			t.Errorf("the variant: %v", made[1].Err)
		}
	})
}

// TestContendedRendition: a rendition that takes long while other pictures wait may be made later.
// A variant is not made.
func TestContendedRendition(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, render.Limits{Workers: 1})
		start := time.Now()
		result := make(chan render.Made, 1)
		go func() {
			o := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 20}, FirstFrame: true}
			made, err := s.m.Make(t.Context(), bytes.NewReader(file), info, o)
			if err != nil {
				t.Error(err)
				made = make([]render.Made, 1)
			}
			result <- made[0]
		}()
		synctest.Wait()
		s.make("b", file, info)
		if err := (<-result).Err; !errors.Is(err, render.ErrBusy) || errors.Is(err, render.ErrNone) || time.Since(start) != 10*time.Second {
			t.Errorf("the rendition, after %v: %v", time.Since(start), err)
		}
		synctest.Wait()
		variant := s.make("c", file, info)
		s.make("d", file, info)
		s.goOn <- struct{}{} // the variant of b
		if err := <-variant; !errors.Is(err, render.ErrNone) || errors.Is(err, render.ErrBusy) {
			t.Errorf("the variant: %v", err)
		}
		s.end()
	})
}
