package ingest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
)

// batch is the items of one request on their way: read, checked, placed.
type batch struct {
	uploader *Uploader
	req      Request
	now      time.Time

	fields map[string]string // what the form says of alias and sub_folder
	items  []*item
	holds  holding
	doomed atomic.Bool // an item has failed, so none will be stored
}

func (u *Uploader) newBatch(req Request) *batch {
	return &batch{uploader: u, req: req, now: u.Now(), fields: map[string]string{}}
}

// aliasName and subFolder are what is known of the request up to now.
func (b *batch) aliasName() string {
	return cmp.Or(b.fields["alias"], b.req.Alias, DefaultAlias)
}

func (b *batch) subFolder() string { return cmp.Or(b.fields["sub_folder"], b.req.SubFolder) }

// read stages every file of the form and keeps its fields. An error ends the request at
// once; what is wrong with a single item waits for the checks.
func (b *batch) read(ctx context.Context, f *form) error {
	for {
		p, err := f.next()
		if err == io.EOF { //nolint:errorlint // the end is io.EOF itself; a wrapped one is a body cut short
			break
		}
		if errors.Is(err, errPassed) {
			return b.failures()
		}
		if err != nil {
			return err
		}
		if p.file {
			err = b.addFile(ctx, p)
		} else {
			err = b.addField(f, p)
		}
		if err != nil {
			return err
		}
	}
	if len(b.items) == 0 {
		return failf(BadRequest, "no file: send it in a part called files[]")
	}
	return nil
}

func (b *batch) addField(f *form, p *part) error {
	value, err := f.value(p)
	if err != nil {
		return err
	}
	if p.name != "alias" && p.name != "sub_folder" {
		return nil
	}
	if _, twice := b.fields[p.name]; twice {
		return failf(BadRequest, "the field %s is sent twice", p.name)
	}
	b.fields[p.name] = value
	if p.name == "alias" && value != "" {
		_, err = b.uploader.alias(b.req, value)
	}
	return err
}

func (b *batch) addFile(ctx context.Context, p *part) error {
	if p.filename == "" { // what a browser sends for a file input that was left empty
		if n, err := io.CopyN(io.Discard, p.body, 1); n == 0 && errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return bodyFailure(err)
		}
		return failf(BadRequest, "a file is sent without a name")
	}
	if !fileField.MatchString(p.name) {
		return &Failure{
			Reason: BadRequest, Filename: p.filename,
			Message: "a file is sent in a part of another name than files[]",
		}
	}
	it := &item{submitted: p.filename}
	b.items = append(b.items, it)
	return it.stage(ctx, b, p.body, bodyFailure)
}

// store checks every item and, if all pass, places them all.
func (b *batch) store(ctx context.Context) ([]Item, error) {
	alias, err := b.uploader.alias(b.req, b.aliasName())
	if err != nil {
		return nil, err
	}
	err = traced(ctx, "media.check", b.attributes, func(ctx context.Context) error { return b.check(ctx, alias) })
	if err != nil {
		return nil, err
	}
	if b.req.Confirm != nil {
		if err := b.req.Confirm(ctx, alias.Name); err != nil {
			return nil, err
		}
	}
	err = traced(ctx, "media.place", b.attributesPlaced, func(ctx context.Context) error { return b.place(ctx, alias) })
	if err != nil {
		return nil, err
	}
	stored := make([]Item, len(b.items))
	for i, it := range b.items {
		stored[i] = Item{
			FullPath: alias.URL(b.req.BaseURL, it.filename), Filename: it.filename, Size: it.size,
		}
		if it.hasVariant() {
			stored[i].WebP = stored[i].FullPath + variant.Suffix
		}
		if alias.WebP != nil && it.isRaster() {
			b.uploader.Observer.Variant(alias, it.variantResult(), it.variantTook)
		}
		b.uploader.Observer.Changed(ctx, Change{Action: it.action(), Alias: alias, Item: stored[i], Actor: b.req.Actor})
	}
	return stored, nil
}

// close drops what was not placed.
func (b *batch) close() error {
	var err error
	for _, it := range b.items {
		err = errors.Join(err, it.drop())
	}
	b.release()
	return err
}
