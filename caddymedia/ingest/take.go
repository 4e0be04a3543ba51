package ingest

import (
	"context"
	"errors"
	"io"
)

// Take takes in one item that is part of no form, under the name that it is submitted with
// and through the same checks. body is read to its end, or to one byte more than its alias
// takes, and not closed. An error of body that is a *[Failure] says why the item could not be
// had; any other one is its detail. The error is Failures.
func (g *Gate) Take(ctx context.Context, name string, body io.Reader, req Request) (Item, error) {
	items, err := g.takeIn(ctx, req, func(ctx context.Context, b *batch) error {
		return b.take(ctx, name, body)
	})
	if err != nil {
		return Item{}, err
	}
	return items[0], nil
}

// Refuse tells of a request whose item could not even be had, as [Gate.Take] does of one that
// it refuses. The error is Failures.
func (g *Gate) Refuse(ctx context.Context, req Request, why *Failure) error {
	_, err := g.takeIn(ctx, req, func(context.Context, *batch) error { return why })
	return err
}

// take stages the one item. Alias and sub folder are known, so that what is sure to be refused
// is not read at all.
func (b *batch) take(ctx context.Context, name string, body io.Reader) error {
	if _, err := b.gate.alias(b.req, b.aliasName()); err != nil {
		return err
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), b.subFolder()
	it := &item{submitted: name}
	b.items = append(b.items, it)
	return it.stage(ctx, b, body, sourceFailure)
}

// sourceFailure tells the caller of an item that could not be read to its end.
func sourceFailure(err error) *Failure {
	if why, ok := errors.AsType[*Failure](err); ok {
		return why
	}
	return &Failure{Reason: BadRequest, Message: "the item could not be read to its end", Err: err}
}
