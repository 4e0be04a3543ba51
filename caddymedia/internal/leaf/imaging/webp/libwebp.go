//go:build cgo && linux

package webp

/*
#include "libwebp.h"
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	// Imported only for the sources of libwebp. The functions of the package take straight alpha
	// for premultiplied and cannot be stopped.
	_ "github.com/chai2010/webp"
)

// libwebpVersion is the first tested version: major << 8 | minor.
const libwebpVersion = 0x0104

type libwebp struct {
	version int
}

// New returns the encoder of this build. It fails for an unsupported version of libwebp.
func New() (Encoder, error) {
	version := int(C.cm_version())
	if err := checkVersion(version); err != nil {
		return nil, err
	}
	if err := checkABI(C.CM_ENCODER_ABI, C.CM_MUX_ABI); err != nil {
		return nil, err
	}
	return libwebp{version}, nil
}

func checkVersion(version int) error {
	switch {
	case version == 0:
		return errors.New("libwebp is not linked into this program")
	case version>>16 != libwebpVersion>>8 || version>>8 < libwebpVersion:
		return fmt.Errorf("this program has libwebp %s, but %d.%d or a later one of the same kind is needed",
			versionText(version), libwebpVersion>>8, libwebpVersion&0xFF)
	}
	return nil
}

// checkABI checks that libwebp supports these versions of its interfaces. They are arguments so
// that a test can pass wrong ones.
func checkABI(encoder, mux int) error {
	if C.cm_accepts(C.int(encoder), C.int(mux)) == 0 {
		return fmt.Errorf("libwebp does not have the interfaces %#x and %#x", encoder, mux)
	}
	return nil
}

func versionText(v int) string { return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xFF, v&0xFF) }

func (l libwebp) Name() string { return "libwebp " + versionText(l.version) }

func (l libwebp) Stops() bool { return true }

func (l libwebp) Encode(ctx context.Context, img image.Image, opts Options) ([]byte, error) {
	opts, err := prepare(ctx, img, opts)
	if err != nil {
		return nil, err
	}
	defer trim(img.Bounds().Dx() * img.Bounds().Dy())
	stop, release := stopFlag(ctx)
	defer release()
	var file C.cm_file
	switch img := img.(type) {
	case *image.YCbCr:
		size := img.Rect.Size()
		shape := C.cm_shape{
			width: C.int(size.X), height: C.int(size.Y),
			stride: C.int(img.YStride), chroma_stride: C.int(img.CStride),
		}
		opts.Lossless = false
		file = C.cm_encode_planes(pointer(img.Y), pointer(img.Cb), pointer(img.Cr), shape, settings(shape, opts), stop)
	case *image.NRGBA:
		shape := shapeOf(img)
		file = C.cm_encode_pixels(pointer(img.Pix), shape, settings(shape, opts), stop)
	}
	return finish(ctx, file, opts, "")
}

// trimPixels is the size of an image from which on its memory is returned to the system at once.
const trimPixels = 500_000

// trim returns freed memory to the system. glibc keeps it in an arena per thread, which soon adds
// up to several times the memory in use.
func trim(pixels int) {
	if pixels >= trimPixels {
		C.cm_trim()
	}
}

func shapeOf(img *image.NRGBA) C.cm_shape {
	size := img.Rect.Size()
	return C.cm_shape{width: C.int(size.X), height: C.int(size.Y), stride: C.int(img.Stride)}
}

// pointer returns the address of the samples, for the duration of a C call.
func pointer(samples []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(samples)) }

// sparingModes is the partition limit for images with many prediction modes. A file has 512 KiB
// for the modes. If they need more, libwebp encodes the whole image again until they fit.
// Limiting them from the start takes a third of the time and costs 0.25 dB.
const sparingModes = 60

// settings returns the settings of libwebp. For lossless encoding the quality of libwebp is an
// effort. An effort of 100 would take 30 times as long for 4 % less.
func settings(shape C.cm_shape, opts Options) C.cm_options {
	if opts.Lossless {
		switch opts.Effort {
		case Fast:
			return C.cm_options{lossless: 1, method: 1, quality: 50}
		case Small:
			return C.cm_options{lossless: 1, method: 6, quality: 90}
		default:
			return C.cm_options{lossless: 1, method: 4, quality: 75}
		}
	}
	s := C.cm_options{quality: C.float(opts.Quality)}
	switch opts.Effort {
	case Fast:
		s.method = 1
	case Small:
		s.method = 6
	default:
		s.method = 4
	}
	pixels := int(shape.width) * int(shape.height)
	if manyModes(pixels, opts.Quality) {
		s.partition_limit = sparingModes
	}
	return s
}

// stopFlag returns a flag for C that is set when ctx is done. C may use it until release is called.
func stopFlag(ctx context.Context) (stop *C.int32_t, release func()) {
	flag := new(atomic.Int32)
	var pin runtime.Pinner
	pin.Pin(flag)
	unwatch := context.AfterFunc(ctx, func() { flag.Store(1) })
	return (*C.int32_t)(unsafe.Pointer(flag)), func() {
		unwatch()
		pin.Unpin()
	}
}

// finish copies a file from C to Go memory. detail is for the error.
func finish(ctx context.Context, file C.cm_file, opts Options, detail string) ([]byte, error) {
	if file.error != C.CM_OK {
		return nil, failure(ctx, int(file.error), detail)
	}
	defer C.cm_free(unsafe.Pointer(file.data))
	data := unsafe.Slice((*byte)(file.data), int(file.size))
	if len(opts.Profile) > 0 {
		return withProfile(data, opts.Profile)
	}
	return bytes.Clone(data), nil
}

// failure returns the error for a code. If ctx is done, that is the reason; an animation does not
// always report it.
func failure(ctx context.Context, code int, detail string) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	text, ok := failures[code]
	if !ok {
		text = fmt.Sprintf("error %d", code)
	}
	if detail != "" {
		text += " (" + detail + ")"
	}
	return errors.New("libwebp: " + text)
}

// failures are the texts for our codes and libwebp's (enum WebPEncodingError).
var failures = map[int]string{
	C.CM_UNUSABLE: "it refuses its settings",
	C.CM_MUX:      "the animation cannot be put together",
	1:             "out of memory",
	2:             "out of memory for the file",
	3:             "a pointer is missing",
	4:             "it refuses its settings",
	5:             "it refuses the image's size",
	6:             "the modes of the image are larger than 512 KiB",
	7:             "a part of the image is larger than 16 MiB",
	8:             "the file cannot be written",
	9:             "the file is larger than 4 GiB",
	10:            "it was stopped",
}

// costs were measured with photographs, noise and drawings.
var costs = map[Use]cost{
	Planes: {25, 100}, Opaque: {40, 50}, Pixels: {300, 0}, Lossless: {420, 0}, Frames: {660, 0},
}

func (libwebp) Memory(t Task) int64 { return costs[t.Use].memory(t) }

func (l libwebp) Animate(ctx context.Context, a Animation, opts Options) ([]byte, error) {
	opts, err := prepareAnimation(ctx, a, opts)
	if err != nil {
		return nil, err
	}
	defer trim(a.Width * a.Height)
	stop, release := stopFlag(ctx)
	defer release()
	canvas := C.cm_shape{width: C.int(a.Width), height: C.int(a.Height)}
	anim := C.cm_anim_new(canvas, C.int(plays(a.Loops)), settings(canvas, opts))
	if anim == nil {
		return nil, failure(ctx, C.CM_UNUSABLE, "")
	}
	defer C.cm_anim_free(anim)
	// libwebp expects the start time of each frame. The time after the last frame ends the
	// animation.
	end, err := a.each(ctx, func(img *image.NRGBA, from, _ time.Duration) error {
		shape := shapeOf(img)
		code := C.cm_anim_add(anim, pointer(img.Pix), shape, C.int(from.Milliseconds()), settings(shape, opts), stop)
		if code != C.CM_OK {
			return failure(ctx, int(code), C.GoString(C.cm_anim_error(anim)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	file := C.cm_anim_finish(anim, C.int(end.Milliseconds()))
	return finish(ctx, file, opts, C.GoString(C.cm_anim_error(anim)))
}
