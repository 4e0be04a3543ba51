package render_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// lazy is a reader that takes long.
type lazy struct{ *bytes.Reader }

func (l lazy) Read(p []byte) (int, error) {
	time.Sleep(11 * time.Second)
	return l.Reader.Read(p[:min(len(p), 100)])
}

// TestDecodingTime: an image that takes too long to be decoded is refused, however short the time
// of an encoder is.
func TestDecodingTime(t *testing.T) {
	t.Parallel()
	file := asPNG(t, scene(40, 30))
	info := checked(t, file, "png")
	synctest.Test(t, func(t *testing.T) {
		m := render.NewMaker(new(recorder), render.Limits{Time: time.Nanosecond})
		m.Clock = render.Elapsed
		_, makeErr := m.Make(t.Context(), lazy{bytes.NewReader(file)}, info, render.Variant(render.Options{}))
		for _, err := range []error{m.Check(t.Context(), lazy{bytes.NewReader(file)}, info), makeErr} {
			if large, ok := errors.AsType[*imaging.TooLargeError](err); !ok || !strings.Contains(large.Message, "takes too long") {
				t.Errorf("error %v", err)
			}
		}
		imagingtest.Is(t, m.Check(t.Context(), bytes.NewReader(file), info), nil, "in time")
	})
}

// TestTimeOfOutputs: each output has the whole time, so that slow renditions cost no variant.
// Renditions that have not begun by then are left for later.
func TestTimeOfOutputs(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{before: func(context.Context) error { time.Sleep(2 * time.Second); return nil }}
		m := render.NewMaker(r, render.Limits{Time: 3 * time.Second})
		outputs := []render.Output{render.Variant(render.Options{})}
		for width := 10; width <= 40; width += 10 {
			outputs = append(outputs, render.Output{Format: imaging.WebP, Box: scale.Box{Width: width}, FirstFrame: true})
		}
		made, err := m.Make(t.Context(), bytes.NewReader(file), info, outputs...)
		imagingtest.Must(t, err)
		for i, o := range made { // the second rendition begins after 2 seconds
			if late := i > 2; errors.Is(o.Err, render.ErrBusy) != late || (o.File == nil) != late {
				t.Errorf("output %d: %d bytes, %v", i, len(o.File), o.Err)
			}
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
		m.Clock = render.Elapsed
		rendition := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 4}, FirstFrame: true}
		made, err := m.Make(t.Context(), bytes.NewReader(file), info, rendition, render.Variant(render.Options{}))
		imagingtest.Must(t, err)
		if made[0].Err != nil || len(made[0].File) == 0 || len(e.still) == 0 || word(e.still[0].(*image.NRGBA)) != "RRRR" {
			t.Errorf("the rendition: %v, of %d still images", made[0].Err, len(e.still))
		}
		if !errors.Is(made[1].Err, render.ErrNone) {
			t.Errorf("the variant: %v", made[1].Err)
		}
	})
}

// TestTimeIsNotContent: only the time is the reason if an output, or decoding, takes too long.
func TestTimeIsNotContent(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		s := newSlow(t, render.Limits{Time: time.Second})
		s.m.Clock = render.Elapsed
		imagingtest.Is(t, <-s.make("a", file, info), render.ErrTime, "encoding")
		imagingtest.Is(t, s.m.Check(t.Context(), lazy{bytes.NewReader(file)}, info), render.ErrTime, "decoding")
	})
}

// waiting is the clock of a machine that is busy with other work, of which a thread has a share.
func waiting(share float64) render.Clock {
	return func() func() time.Duration {
		start := time.Now()
		return func() time.Duration { return time.Duration(share * float64(time.Since(start))) }
	}
}

// TestTimeOfBusyMachine: an image that gets little of the processor has more time. If it is too
// little, the caller may try again. No image is refused, or left without its variant, for it.
func TestTimeOfBusyMachine(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	rendition := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 10}, FirstFrame: true}
	for name, c := range map[string]struct {
		share float64
		pause time.Duration // of each step
		want  error
	}{
		"in time": {1, 19 * time.Second, nil},
		"slow":    {0.25, 79 * time.Second, nil},
		"late":    {0.25, 81 * time.Second, render.ErrTime},
		"stalled": {0.01, 101 * time.Second, render.ErrBusy},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{before: func(ctx context.Context) error { return sleep(ctx, c.pause) }}
			m := render.NewMaker(r, render.Limits{})
			m.Clock = waiting(c.share)
			_, err := variantOf(t.Context(), m, bytes.NewReader(file), info, render.Options{})
			imagingtest.Is(t, err, c.want, name, "encoding")
			imagingtest.Equal(t, errors.Is(err, render.ErrNone), errors.Is(c.want, render.ErrTime), name, "encoding: there is none")
			made, err := m.Make(t.Context(), bytes.NewReader(file), info, rendition)
			imagingtest.Must(t, err, name)
			imagingtest.Is(t, made[0].Err, c.want, name, "a rendition")
			imagingtest.Equal(t, errors.Is(made[0].Err, render.ErrNone), errors.Is(c.want, render.ErrTime), name, "a rendition: there is none")
			err = m.Check(t.Context(), &pausing{Reader: bytes.NewReader(file), pause: c.pause}, info)
			imagingtest.Is(t, err, c.want, name, "decoding")
			_, refused := errors.AsType[*imaging.TooLargeError](err)
			imagingtest.Equal(t, refused, errors.Is(c.want, render.ErrTime), name, "decoding: it is refused")
		})
	}
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pausing is a reader that waits once.
type pausing struct {
	*bytes.Reader
	pause time.Duration
}

func (p *pausing) Read(b []byte) (int, error) {
	time.Sleep(p.pause)
	p.pause = 0
	return p.Reader.Read(b[:min(len(b), 100)])
}

// TestThreadTime: work counts, and waiting does not where the system knows the difference.
func TestThreadTime(t *testing.T) {
	t.Parallel()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	worked, elapsed := render.ThreadTime(), render.Elapsed()
	time.Sleep(100 * time.Millisecond)
	if runtime.GOOS == "linux" && worked() > elapsed()/2 {
		t.Errorf("a pause of %v counts as %v", elapsed(), worked())
	}
	for sum, before := 0, worked(); worked() < before+20*time.Millisecond; sum++ {
	}
	other := make(chan time.Duration)
	go func() { other <- worked() }()
	if got := <-other; got < 20*time.Millisecond {
		t.Errorf("another goroutine sees %v", got)
	}
}

// frames is an encoder whose images, and frames of animations, take a second each.
type frames struct {
	recorder
	count int
}

func (f *frames) Animate(ctx context.Context, a webp.Animation, _ webp.Options) ([]byte, error) {
	for range a.Frames {
		time.Sleep(time.Second)
		f.count++
	}
	return []byte("moving"), context.Cause(ctx)
}

// admitted returns a Maker for a stored image.
func admitted(t *testing.T, m *render.Maker, long bool) *render.Maker {
	t.Helper()
	return admittedFor(t, m, "a", long)
}

// admittedFor returns a Maker for a stored image, at the request of owner.
func admittedFor(t *testing.T, m *render.Maker, owner string, long bool) *render.Maker {
	t.Helper()
	on, leave, err := m.Admit(t.Context(), owner, long)
	imagingtest.Must(t, err)
	t.Cleanup(leave)
	return on
}

// TestRequestsTakeTurns: an image on request waits for one of another owner, besides that which is
// being worked on, however many that one has.
func TestRequestsTakeTurns(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, image.NewGray(image.Rect(0, 0, 1025, 1024)))
	info := checked(t, file, "jpg")
	synctest.Test(t, func(t *testing.T) {
		e := new(recorder)
		e.before = func(context.Context) error { time.Sleep(time.Second); return nil }
		m := render.NewMaker(e, render.Limits{Workers: 2, Memory: 1 << 40}) // one for images on request
		var took time.Duration
		var wg sync.WaitGroup
		start := time.Now()
		for _, owner := range []string{"a", "a", "a", "b"} {
			on := admittedFor(t, m, owner, false)
			wg.Go(func() {
				_, err := variantOf(t.Context(), on, bytes.NewReader(file), info, render.Options{})
				imagingtest.Is(t, err, nil)
				if owner == "b" {
					took = time.Since(start)
				}
			})
			synctest.Wait()
		}
		if wg.Wait(); took != 3*time.Second {
			t.Errorf("it took %v, want 3 s", took)
		}
	})
}

// longGIF is an animation of nine frames of a megapixel.
func longGIF(t *testing.T) ([]byte, imaging.Info) {
	t.Helper()
	large := image.NewPaletted(image.Rect(0, 0, 1024, 1024), color.Palette{color.White, color.Black})
	file := asGIF(t, &gif.GIF{Image: slices.Repeat([]*image.Paletted{large}, 9), Delay: make([]int, 9)})
	return file, checked(t, file, "gif")
}

// TestLongAnimationBeside: a long animation on request delays no other images.
func TestLongAnimationBeside(t *testing.T) {
	t.Parallel()
	still := asJPEG(t, image.NewGray(image.Rect(0, 0, 1025, 1024)))
	info := checked(t, still, "jpg")
	long, longInfo := longGIF(t)
	synctest.Test(t, func(t *testing.T) {
		e := new(frames)
		e.before = func(context.Context) error { time.Sleep(3 * time.Second); return nil }
		m := render.NewMaker(e, render.Limits{Workers: 1, Memory: 1 << 40, Time: 15 * time.Second})
		made := make(chan render.Made, 1)
		on := admitted(t, m, true)
		go func() {
			o := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 512}, FirstFrame: true}
			results, err := on.Make(t.Context(), bytes.NewReader(long), longInfo, o)
			if err != nil {
				t.Error(err)
				results = make([]render.Made, 1)
			}
			made <- results[0]
		}()
		time.Sleep(1500 * time.Millisecond) // within the second frame
		for _, maker := range []*render.Maker{m.For(queue.Party{Owner: "b"}), admitted(t, m, false)} {
			start := time.Now()
			_, err := variantOf(t.Context(), maker, bytes.NewReader(still), info, render.Options{})
			imagingtest.Is(t, err, nil)
			if took := time.Since(start); took != 3*time.Second || len(made) > 0 {
				t.Errorf("an image took %v, with its own 3 s", took)
			}
		}
		if result := <-made; result.Err != nil || string(result.File) != "moving" || e.count != 9 {
			t.Errorf("the animation: %q of %d frames, %v", result.File, e.count, result.Err)
		}
	})
}

// TestWorkerIsLeft: stored images, and long animations of an owner, never have the last worker
// where there are several.
func TestWorkerIsLeft(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	info := checked(t, file, "jpg")
	long, longInfo := longGIF(t)
	for workers, want := range map[int]int{1: 1, 2: 1, 4: 3} {
		for _, animated := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow(t, render.Limits{Workers: workers, Memory: 1 << 40})
				on, file, info := admitted(t, s.m, false), file, info
				if animated {
					on, file, info = s.m.For(queue.Party{Owner: "a"}), long, longInfo
				}
				for range workers + 1 {
					go func() { _ = on.Check(t.Context(), stalled{bytes.NewReader(file), s.goOn}, info) }()
				}
				synctest.Wait()
				imagingtest.Equal(t, s.m.Working(), want, "of", workers, "workers")
				s.end()
			})
		}
	}
}

// stalled is a reader that waits.
type stalled struct {
	*bytes.Reader
	goOn chan struct{}
}

func (s stalled) Read(p []byte) (int, error) {
	<-s.goOn
	return s.Reader.Read(p)
}

// TestLongRequests: long animations that wait keep out no other requests. They wait as long as
// their context allows.
func TestLongRequests(t *testing.T) {
	t.Parallel()
	long, info := longGIF(t)
	synctest.Test(t, func(t *testing.T) {
		m := render.NewMaker(new(recorder), render.Limits{Workers: 1, Queue: 7})
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 12)
		for range 12 {
			go func() {
				_, _, err := m.Admit(ctx, "a", true)
				ended <- err
			}()
		}
		time.Sleep(time.Hour)
		if len(ended) != 5 || m.Waiting() != 7 {
			t.Errorf("%d ended, %d wait", len(ended), m.Waiting())
		}
		imagingtest.Is(t, admitted(t, m, false).Check(t.Context(), bytes.NewReader(long), info), render.ErrLong, "not admitted as long")
		end()
	})
}

// TestMemoryEstimates compares the estimated memory of an image with all allocations of its
// decoder and of the conversion. They can never hold more than that at a time.
func TestMemoryEstimates(t *testing.T) {
	deep := image.NewNRGBA64(image.Rect(0, 0, 701, 500))
	draw.Draw(deep, deep.Rect, scene(701, 500), image.Point{}, draw.Src)
	deep.Pix[6] = 1 // not opaque
	files := map[string][]byte{
		"photo.jpg": asJPEG(t, scene(700, 500)), "odd.jpg": asJPEG(t, scene(701, 501)),
		"grey.jpg":    asJPEG(t, image.NewGray(image.Rect(0, 0, 701, 500))),
		"colours.png": asPNG(t, scene(701, 500)), "deep.png": asPNG(t, deep),
		"grey.png": asPNG(t, image.NewGray(image.Rect(0, 0, 701, 500))),
	}
	for o := byte(2); o <= 8; o++ {
		files[fmt.Sprintf("turned-%d.jpg", o)] = withOrientation(files["photo.jpg"], o)
		files[fmt.Sprintf("odd-turned-%d.jpg", o)] = withOrientation(files["odd.jpg"], o)
	}
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		for _, folder := range []string{"valid", "color", "orientation", "anim"} {
			names, err := fs.Glob(os.DirFS(root), folder+"/*")
			if err != nil || len(names) == 0 {
				t.Fatalf("%d files (%v)", len(names), err)
			}
			for _, name := range names {
				file, err := fs.ReadFile(os.DirFS(root), name)
				imagingtest.Must(t, err)
				files[name] = file
			}
		}
	}
	for name, file := range files {
		info := checked(t, file, strings.TrimPrefix(path.Ext(name), "."))
		decoding, converting := render.Memory(info)
		var decoded, converted int64
		if info.Format == imaging.GIF {
			g, err := imaging.DecodeGIF(bytes.NewReader(file), info)
			imagingtest.Must(t, err)
			decoded = allocated(func() { _, _ = imaging.DecodeGIF(bytes.NewReader(file), info) })
			if info.Frames == 1 {
				converted = allocated(func() { render.Compose(g) })
			}
		} else {
			img, err := imaging.Decode(bytes.NewReader(file), info)
			imagingtest.Must(t, err, name)
			decoded = allocated(func() { _, _ = imaging.Decode(bytes.NewReader(file), info) })
			converted = allocated(func() { render.Upright(img, info) })
		}
		tables := int64(192+32*info.Frames) << 10 // tables, whatever the size of the image or frame
		if most := decoding + decoding/20 + tables; decoded > most {
			t.Errorf("decoding %s takes %d bytes, at most %d are expected", name, decoded, most)
		}
		if most := decoding + converting + (decoding+converting)/20 + tables; decoded+converted > most {
			t.Errorf("with converting %s takes %d bytes, at most %d are expected", name, decoded+converted, most)
		}
	}
}

// TestAlphaMemory: an image with alpha is only encoded if there is the memory for that.
func TestAlphaMemory(t *testing.T) {
	t.Parallel()
	alpha := scene(100, 100)
	alpha.Pix[3] = 128
	m := render.NewMaker(&recorder{memory: 100}, render.Limits{Memory: 100 * 100 * 150})
	for name, tt := range map[string]struct {
		img  image.Image
		want error
	}{"opaque": {scene(100, 100), nil}, "alpha": {alpha, render.ErrNone}} {
		file := asPNG(t, tt.img)
		_, err := variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, "png"), render.Options{})
		imagingtest.Is(t, err, tt.want, name)
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestLosslessIsPlanned: a photograph that becomes pixels by its turn is never encoded losslessly,
// however few colours it has. Its memory is estimated for lossy encoding.
func TestLosslessIsPlanned(t *testing.T) {
	t.Parallel()
	plain := image.NewNRGBA(image.Rect(0, 0, 101, 101))
	draw.Draw(plain, plain.Rect, image.NewUniform(color.NRGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	r := recorded(t, withOrientation(asJPEG(t, plain), 3), "jpg")
	if len(r.still) != 1 || slices.Contains(r.lossless, true) {
		t.Errorf("encoded %d times, losslessly: %v", len(r.still), r.lossless)
	}
}

// heap is an encoder that measures the live memory during animations.
type heap struct {
	recorder
	live uint64
}

func (h *heap) Animate(_ context.Context, a webp.Animation, _ webp.Options) ([]byte, error) {
	for range a.Frames {
		h.live = max(h.live, liveMemory())
	}
	return []byte("moving"), nil
}

// liveMemory returns the bytes in use.
func liveMemory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAnimationMemory compares the estimated memory of animations with the memory in use.
func TestAnimationMemory(t *testing.T) {
	g := &gif.GIF{Config: image.Config{Width: 1000, Height: 1000, ColorModel: ink}}
	for i := range 3 {
		f := image.NewPaletted(image.Rect(0, 0, 1000, 1000), ink)
		for j := range f.Pix {
			f.Pix[j] = uint8((i + j) % len(ink))
		}
		g.Image, g.Delay, g.Disposal = append(g.Image, f), append(g.Delay, 10), append(g.Disposal, gif.DisposalPrevious)
	}
	file := asGIF(t, g)
	info := checked(t, file, "gif")
	small := scale.Box{Width: 100}
	for name, outputs := range map[string][]render.Output{
		"whole":            {render.Variant(render.Options{})},
		"scaled":           {{Format: imaging.WebP, Box: scale.Box{Width: 900}}},
		"whole and still":  {render.Variant(render.Options{}), {Format: imaging.JPEG, Box: small}},
		"scaled and still": {{Format: imaging.JPEG, Box: small}, {Format: imaging.WebP, Box: small, FirstFrame: true}},
	} {
		e := new(heap)
		m := render.NewMaker(e, render.Limits{})
		before := liveMemory()
		_, err := m.Make(t.Context(), bytes.NewReader(file), info, outputs...)
		imagingtest.Must(t, err)
		const tables = 256 << 10
		most := render.MakingMemory(m, info, outputs...) + tables
		if live := int64(e.live - before); live > most {
			t.Errorf("%s: %d bytes in use, at most %d are expected", name, live, most)
		}
	}
}

// TestMemoryOfFiles: the memory for several outputs includes their files. Outputs beyond the limit
// are not made, and a variant is the last of them.
func TestMemoryOfFiles(t *testing.T) {
	t.Parallel()
	noise := image.NewNRGBA(image.Rect(0, 0, 200, 200))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(random.Uint32())
	}
	file := asPNG(t, noise)
	info := checked(t, file, "png")
	one := []render.Output{{Format: imaging.PNG, Box: scale.Box{Width: 190}}}
	outputs := slices.Repeat(one, 16)
	free := render.NewMaker(new(recorder), render.Limits{})
	made, err := free.Make(t.Context(), bytes.NewReader(file), info, outputs...)
	imagingtest.Must(t, err)
	files := int64(0)
	for _, o := range made[1:] {
		files += int64(cap(o.File))
	}
	least := render.MakingMemory(free, info, one...)
	if all := render.MakingMemory(free, info, outputs...); all < least+files*95/100 {
		t.Errorf("%d bytes for all outputs, %d for one, and the files have %d", all, least, files)
	}
	tight := render.NewMaker(new(recorder), render.Limits{Memory: least + files/2})
	made, err = tight.Make(t.Context(), bytes.NewReader(file), info, append(outputs, render.Variant(render.Options{}))...)
	imagingtest.Must(t, err)
	for i, want := range map[int]error{0: render.ErrNone, 15: nil, 16: nil} {
		if !errors.Is(made[i].Err, want) {
			t.Errorf("output %d: %v, want %v", i, made[i].Err, want)
		}
	}
}

// unplugged is an encoder during whose animations the image cannot be read any more.
type unplugged struct {
	recorder
	*bytes.Reader
	gone bool
}

var errGone = errors.New("the disk is gone")

func (u *unplugged) Animate(ctx context.Context, a webp.Animation, opts webp.Options) ([]byte, error) {
	u.gone = true
	return u.recorder.Animate(ctx, a, opts)
}

func (u *unplugged) Read(p []byte) (int, error) {
	if u.gone {
		return 0, errGone
	}
	return u.Reader.Read(p)
}

// TestFramesAreGone: a failure to read the frames of an animation again is an error of the job. It
// says nothing about the image.
func TestFramesAreGone(t *testing.T) {
	t.Parallel()
	moving := output(t, asGIF(t, words("RRRR", "GGGG", "BBBB")), "gif", render.Output{Format: imaging.WebP})
	info := checked(t, moving, "webp")
	rendition := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 2}, FirstFrame: true}
	for _, o := range []render.Output{render.Variant(render.Options{}), rendition} {
		u := &unplugged{Reader: bytes.NewReader(moving)}
		made, err := render.NewMaker(u, render.Limits{}).Make(t.Context(), u, info, o, o)
		if !errors.Is(err, errGone) || errors.Is(err, render.ErrNone) || made != nil {
			t.Errorf("got %v, %v", made, err)
		}
	}
}
