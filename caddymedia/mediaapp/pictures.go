package mediaapp

import (
	"fmt"
	"log/slog"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// pictures gives the maker of variants. It is the same before and after a reload that
// does not change its limits: what is being worked on counts.
func (a *App) pictures() (*variant.Maker, error) {
	limits, wanted := a.Limits.pictures(), a.wantsWebP()
	maker, done, err := pooled("pictures", fmt.Sprint(limits, wanted), func() (*variant.Maker, error) {
		if !wanted {
			return variant.NewMaker(nil, limits), nil
		}
		encoder, err := webp.New()
		if err != nil {
			return nil, fmt.Errorf("WebP encoder: %w", err)
		}
		a.log.Info("WebP encoder", slog.String("name", encoder.Name()), slog.Bool("can_be_stopped", encoder.Stops()))
		return variant.NewMaker(encoder, limits), nil
	})
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, done)
	a.metrics.gauge("waiting_pictures", "Pictures that wait to be decoded and encoded.", nil, maker.Waiting)
	a.metrics.gauge("working_pictures", "Pictures that are being decoded and encoded.", nil, maker.Working)
	return maker, nil
}

func (a *App) wantsWebP() bool {
	for _, alias := range a.ImageAliases {
		if alias != nil && alias.WebP != nil {
			return true
		}
	}
	return false
}
