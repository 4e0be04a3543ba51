package item

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
)

// scope is the instrumentation scope of the spans, those of renditions made by a GET included.
const scope = "github.com/caddymedia/media/caddymedia"

// Traced calls step in a child span of the span of ctx, by the same provider. attributes is called
// after step. If the parent is not recorded, there is no span.
func Traced(
	ctx context.Context, name string, attributes func() []attribute.KeyValue, step func(context.Context) error,
) error {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return step(ctx)
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name)
	defer span.End()
	err := step(ctx)
	span.SetAttributes(attributes()...)
	if err != nil {
		result, fault := resultOf(err)
		span.SetAttributes(attribute.String("media.result", result))
		if fault {
			span.SetStatus(codes.Error, result)
		}
	}
	return err
}

// resultOf returns a word for an error, and whether the service or a storage, not the caller, is at
// fault.
func resultOf(err error) (result string, fault bool) {
	if errors.Is(err, render.ErrNone) {
		return string(VariantNone), false
	}
	var (
		failures Failures
		failure  *Failure
	)
	if !errors.As(err, &failures) {
		if !errors.As(err, &failure) {
			failure = ContentFailure(err)
		}
		failures = Failures{failure}
	}
	for _, f := range failures {
		switch f.Reason {
		case BadRequest, Forbidden, Conflict, TooLarge, BadContent, Unauthorized: // the caller is at fault
		default:
			return f.Reason.String(), true
		}
	}
	return failures[0].Reason.String(), false
}

// Attributes returns the attributes of spans about an alias.
func (a *Alias) Attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("media.alias.kind", string(a.Kind)),
		attribute.String("media.alias.name", a.Name),
		attribute.String("media.storage.name", a.Storage.Name()),
	}
}
