package ingest

import (
	"context"
	"errors"
	"io"
)

// Source yields the files of a request: [Form] or [Single].
type Source interface {
	receive(ctx context.Context, b *batch) error
}

// Form returns the files of a multipart/form-data body.
func Form(body io.Reader, boundary string) Source { return formSource{body, boundary} }

type formSource struct {
	body     io.Reader
	boundary string
}

func (s formSource) receive(ctx context.Context, b *batch) error {
	f := newForm(s.body, s.boundary, b.uploader.Limits, b.uploader.largest(b.req))
	defer f.close()
	return b.read(ctx, f)
}

// Single returns one file outside of a form, submitted under name. Upload reads body to its end, or to
// one byte more than the alias accepts, and does not close it. If body fails with a *[Failure], the
// caller is shown that one.
func Single(name string, body io.Reader) Source { return singleSource{name, body} }

type singleSource struct {
	name string
	body io.Reader
}

// receive stages the file. Its alias and sub folder are known, so a file that is sure to be refused is
// not read.
func (s singleSource) receive(ctx context.Context, b *batch) error {
	if _, err := b.uploader.alias(b.req, b.aliasName()); err != nil {
		return err
	}
	b.fields["alias"], b.fields["sub_folder"] = b.aliasName(), b.subFolder()
	it := &item{submitted: s.name}
	b.items = append(b.items, it)
	return it.stage(ctx, b, s.body, sourceFailure)
}

// sourceFailure tells the caller of an item that could not be read to its end.
func sourceFailure(err error) *Failure {
	if why, ok := errors.AsType[*Failure](err); ok {
		return why
	}
	return &Failure{Reason: BadRequest, Message: "the item could not be read to its end", Err: err}
}
