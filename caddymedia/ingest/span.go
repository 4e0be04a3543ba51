package ingest

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
)

// scope is who makes the spans, in the words of OpenTelemetry.
const scope = "github.com/caddymedia/media/caddymedia/ingest"

// traced takes a step within a span of its own, below the one in ctx and with the provider of
// that one; about gives what is known after the step. Where none is recorded there is no span.
func traced(
	ctx context.Context, name string, about func() []attribute.KeyValue, step func(context.Context) error,
) error {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return step(ctx)
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name)
	defer span.End()
	err := step(ctx)
	span.SetAttributes(about()...)
	if err != nil {
		result, fault := resultOf(err)
		span.SetAttributes(attribute.String("media.result", result))
		if fault {
			span.SetStatus(codes.Error, result)
		}
	}
	return err
}

// resultOf gives an error in one word, and whether the service or a storage is at fault and
// not what was sent.
func resultOf(err error) (result string, fault bool) {
	if errors.Is(err, variant.ErrNone) {
		return string(VariantNone), false
	}
	var (
		failures Failures
		failure  *Failure
	)
	if !errors.As(err, &failures) {
		if !errors.As(err, &failure) {
			failure = contentFailure(err)
		}
		failures = Failures{failure}
	}
	for _, f := range failures {
		if f.Reason.fault() {
			return f.Reason.String(), true
		}
	}
	return failures[0].Reason.String(), false
}

// fault tells whether the service or a storage is to blame.
func (r Reason) fault() bool {
	switch r {
	case BadRequest, Forbidden, Conflict, TooLarge, BadContent, Unauthorized:
		return false
	default:
		return true
	}
}

// attributes are what a span tells of an alias.
func (a *Alias) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("media.alias.kind", string(a.Kind)),
		attribute.String("media.alias.name", a.Name),
		attribute.String("media.storage.name", a.Storage.Name()),
	}
}

// attributes are what a span tells of a request. An alias that does not exist is not named:
// that would be any text.
func (b *batch) attributes() []attribute.KeyValue {
	about := []attribute.KeyValue{attribute.String("media.alias.kind", string(b.req.Kind))}
	if alias := b.uploader.Aliases[b.req.Kind][b.aliasName()]; alias != nil {
		about = alias.attributes()
	}
	var size int64
	for _, it := range b.items {
		size += it.size
	}
	return append(about, attribute.Int("media.files", len(b.items)), attribute.Int64("media.size", size))
}

// attributesPlaced are those of a request whose items have passed the checks, so that their
// names are fit to be shown.
func (b *batch) attributesPlaced() []attribute.KeyValue {
	filenames := make([]string, len(b.items))
	for i, it := range b.items {
		filenames[i] = it.filename
	}
	return append(b.attributes(), attribute.StringSlice("media.filename", filenames))
}
