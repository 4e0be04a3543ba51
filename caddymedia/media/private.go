package media

import (
	"fmt"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Private serves the items of an alias, their variants and their renditions only with a signed
// address that expires. All other requests get 403. Browsers cache an item until its address
// expires, for an hour at most.
type Private struct {
	// Renditions that need no signature, as in a public alias. It opens no SVG. Default: none.
	Public []string `json:"public,omitempty" example:"thumb"`

	// The steps in which addresses expire, at most 7 days: with `1h` at each full hour. An address
	// stays the same for that long, so that browsers find the item in their cache. It is valid for up
	// to a step longer than requested. Where that would exceed 7 days, its end is rounded down: with a
	// step near 7 days it may end within seconds. Default: the requested second.
	Step options.Duration `json:"step,omitempty" example:"1h"`

	// Whether caches that visitors share may keep an item until its address expires, under that
	// address. Default: `false`, only browsers may.
	SharedCache bool `json:"shared_cache,omitempty"`

	// A number that is part of each signature. Another number revokes all addresses of the alias.
	// Default: 0.
	Generation int64 `json:"generation,omitempty" option:"zero"`
}

// Check implements options.Checker.
func (p *Private) Check() error {
	if step := time.Duration(p.Step); step%time.Second != 0 || step > signing.MaxLifetime {
		return fmt.Errorf("step is whole seconds, 7d at most, not %v", step)
	}
	return nil
}

// checkPublic returns an error unless all public renditions exist.
func (p *Private) checkPublic(renditions map[string]Rendition) error {
	if p == nil {
		return nil
	}
	for _, name := range p.Public {
		if _, ok := renditions[name]; !ok {
			return fmt.Errorf("private.public: there is no rendition %q", name)
		}
	}
	return nil
}

// setPrivate makes an alias private if its options say so.
func (o *AliasOptions) setPrivate(alias *item.Alias) {
	if p := o.Private; p != nil {
		alias.Private = &item.Private{
			Public: p.Public, Step: time.Duration(p.Step), SharedCache: p.SharedCache, Generation: p.Generation,
		}
		alias.CacheControl = alias.Private.CacheControl(signing.MaxLifetime)
	}
}
