package derived_test

import (
	"context"
	"image"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

var (
	noon                      = derivedtest.Noon
	red, green, blue, unloved = derivedtest.Red, derivedtest.Green, derivedtest.Blue, derivedtest.Unloved

	onMemory, shared, storages     = derivedtest.OnMemory, derivedtest.Shared, derivedtest.Storages
	onEach                         = derivedtest.OnEach
	imageAlias, withRenditions     = derivedtest.Images, derivedtest.WithRenditions
	pngOf, webpOf                  = derivedtest.PNGOf, derivedtest.WebPOf
	put, replace                   = derivedtest.Put, derivedtest.Replace
	contents, wantContents         = derivedtest.Contents, derivedtest.WantContents
	request, opened, wantRendition = derivedtest.Request, derivedtest.Opened, derivedtest.WantRendition
	wantRenditions, hashes         = derivedtest.WantRenditions, derivedtest.Hashes
)

type opener = derivedtest.Opener

func newMaker() *derived.Maker { return derivedtest.NewMaker(derivedtest.Painter{}, render.Limits{}) }

// counted is an encoder that counts its images, and calls before for each of them.
type counted struct {
	derivedtest.Painter
	painted *atomic.Int64
	before  func(context.Context) error
}

func (c counted) Encode(ctx context.Context, img image.Image, opts webp.Options) ([]byte, error) {
	c.painted.Add(1)
	if err := c.before(ctx); err != nil {
		return nil, err
	}
	return c.Painter.Encode(ctx, img, opts)
}

// counting returns a maker with a [counted] encoder.
func counting(limits render.Limits, before func(context.Context) error) (*derived.Maker, *atomic.Int64) {
	painted := new(atomic.Int64)
	return derivedtest.NewMaker(counted{painted: painted, before: before}, limits), painted
}

// until returns a function that waits until goOn is closed.
func until(goOn <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
