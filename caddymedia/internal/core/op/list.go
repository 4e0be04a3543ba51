package op

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// Listed is an item in a list.
type Listed struct {
	storagedrivers.Info
	HasVariant bool
	// Facts of an image; nil if its alias or the request wants none.
	Facts *derived.Facts
}

// List returns a page of items, with what a list says of each. Its base URL is that of addresses in
// facts; without facts they are not read.
func (p *Permit) List(
	ctx context.Context, query service.ItemQuery, hasFacts bool, baseURL string,
) (page service.ItemPage, items []Listed, err error) {
	failure := p.NeedOne(access.List)
	if failure == nil && !p.Account.Covers(query.Folder) {
		failure = ErrNoFolder
	}
	if failure != nil {
		return page, nil, failure
	}
	page, err = p.Service.ListItems(ctx, query)
	if err == nil {
		items, err = describe(ctx, query.Alias, page.Items, page.Variants)
	}
	if err == nil && hasFacts {
		err = p.addFacts(ctx, query.Alias, baseURL, items, true)
	}
	return page, items, err
}

// Stat returns an item as in a list, with its facts. The error is fs.ErrNotExist if there is none.
func (p *Permit) Stat(ctx context.Context, alias *item.Alias, filename, baseURL string) (Listed, error) {
	if failure := p.NeedOne(access.List); failure != nil {
		return Listed{}, failure
	}
	return p.Stored(ctx, alias, filename, true, baseURL)
}

// Stored is [Permit.Stat] for an item that the caller has stored, who needs no right to see it.
func (p *Permit) Stored(ctx context.Context, alias *item.Alias, filename string, hasFacts bool, baseURL string) (Listed, error) {
	if !p.MayBeItem(alias, filename) {
		return Listed{}, fs.ErrNotExist
	}
	info, err := alias.StatPresent(ctx, filename, p.Service.Uploader().Now())
	if err != nil {
		return Listed{}, err
	}
	items, err := describe(ctx, alias, []storagedrivers.Info{info}, nil)
	if err == nil && hasFacts {
		err = p.addFacts(ctx, alias, baseURL, items, false)
	}
	if err == nil && len(items) == 0 { // it was deleted meanwhile
		err = fs.ErrNotExist
	}
	if err != nil {
		return Listed{}, err
	}
	return items[0], nil
}

// describe returns what a list says of objects. The storage is asked about an item if the backend
// lists neither tags nor exact times, and about a variant that the list has not seen. An item that
// is deleted meanwhile is left out.
func describe(
	ctx context.Context, alias *item.Alias, infos []storagedrivers.Info, variants map[string]bool,
) ([]Listed, error) {
	listed := make([]Listed, len(infos))
	group := guard.NewGroup(atOnce)
	listsTags := alias.Storage.Features().ListTimes // of which the tags are made
	for i, info := range infos {
		one := &listed[i]
		*one = Listed{Info: info, HasVariant: variants[info.Key+render.Suffix]}
		filename := alias.Filename(info.Key)
		asksVariant := !one.HasVariant && alias.WebP != nil && alias.MayHaveVariant(filename)
		asksItem := info.ETag == "" && variants != nil && !listsTags
		if !asksItem && !asksVariant {
			continue
		}
		group.Go(func() (err error) {
			if asksItem {
				if one.Info, err = item.Stat(ctx, alias.Storage, info.Key); err != nil || one.Key == "" {
					return err
				}
			}
			if !asksVariant {
				return nil
			}
			variant, err := item.Stat(ctx, alias.Storage, alias.VariantKey(filename))
			one.HasVariant = variant.Key != ""
			if errors.Is(err, storagedrivers.ErrInvalidKey) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(listed, func(one Listed) bool { return one.Key == "" }), nil
}

// addFacts adds the facts of images, as far as the alias wants them.
func (p *Permit) addFacts(ctx context.Context, alias *item.Alias, baseURL string, items []Listed, inList bool) error {
	if alias.Facts == item.NoFacts {
		return nil
	}
	group := guard.NewGroup(atOnce)
	maker := p.Service.Uploader().Derived
	for i := range items {
		group.Go(func() (err error) {
			items[i].Facts, err = maker.StoredFacts(ctx, alias, baseURL, items[i].Info, p.Actor.Owner(), inList)
			return err
		})
	}
	return group.Wait()
}

// Sign returns the signed addresses of items, or the query for a folder; see
// [service.Service.Sign]. A user who names no item signs its folder. The error is an
// *[item.Failure] if the account may not sign these, or the token store cannot be reached.
func (p *Permit) Sign(ctx context.Context, req service.SignRequest) ([]service.SignedAddress, error) {
	if failure := p.NeedOne(access.Sign); failure != nil {
		return nil, failure
	}
	if !p.Account.Allows(req.Alias) { // it must not learn which aliases exist
		return nil, notAllowed(req.Alias)
	}
	if len(req.Filenames) == 0 && req.Folder == "" {
		req.Folder = p.Account.Folder
	}
	isOther := func(path string) bool { return !p.Account.Covers(path) }
	if req.Folder != "" && isOther(req.Folder) || slices.ContainsFunc(req.Filenames, isOther) {
		return nil, ErrNoFolder
	}
	signed, err := p.Service.Sign(ctx, req)
	if errors.Is(err, tokens.ErrUnavailable) {
		return nil, StoreUnreachable(ctx, p.Log, "addresses cannot be signed now, try again later", err)
	}
	if err == nil {
		p.Service.Observer().Signed(ctx, p.Account.APIKey, len(signed))
	}
	return signed, err
}
