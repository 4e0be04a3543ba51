package storagedrivers

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/caddymedia/media/storagedrivers"

var noSpan trace.Span = noop.Span{}

// startSpan starts the span of an operation as a child of the one in ctx, with the same provider.
// It starts none if the parent is not recorded.
func (s *Storage) startSpan(ctx context.Context, op, key string) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, noSpan
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, "media.storage."+op)
	span.SetAttributes(attribute.String("media.storage.name", s.name))
	if key != "" {
		span.SetAttributes(attribute.String("media.key", key))
	}
	return ctx, span
}

// endSpan ends the span of an operation. It records only the operation and the kind of an error,
// because the text of a driver may contain hosts and paths.
func endSpan(span trace.Span, op string, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		name := kindOf(err).name
		span.SetAttributes(attribute.String("media.result", name))
		if Fault(op, err) {
			span.SetStatus(codes.Error, op+": "+name)
		}
	}
	span.End()
}

// note adds an attribute to the span of the operation in ctx.
func note(ctx context.Context, what attribute.KeyValue) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(what)
	}
}

// kind of an error. Kinds that are no fault are normal states or caused by the caller. For example,
// if a name exists, the caller tries the next one.
type kind struct {
	name  string
	fault bool
	err   error
}

// kinds are in order of precedence, for joined errors.
var kinds = []kind{
	{"in_use", false, ErrInUse},
	{"unavailable", true, ErrUnavailable},
	{"canceled", false, context.Canceled},
	{"timeout", true, context.DeadlineExceeded},
	{"no_space", true, ErrNoSpace},
	{"size_mismatch", true, ErrSizeMismatch},
	{"permission", true, fs.ErrPermission},
	{"changed", false, ErrChanged},
	{"unsupported", false, errors.ErrUnsupported},
	{"invalid_key", false, ErrInvalidKey},
	{"invalid_range", false, ErrInvalidRange},
	{"exists", false, fs.ErrExist},
	{"not_found", false, fs.ErrNotExist},
}

// Fault reports whether the backend is to blame for the outcome of an operation; op is its name as
// in [OpError]. Otherwise err is nil, a normal state, or caused by the caller. A missing object is
// a fault, unless the caller asked for it ("open", "stat", "append", "flush", "adopt"); an existing
// name is none.
func Fault(op string, err error) bool {
	if err == nil {
		return false
	}
	kind := kindOf(err)
	asked := slices.Contains([]string{"open", "stat", "append", "flush", "adopt"}, op)
	return kind.fault || kind.name == "not_found" && !asked
}

func kindOf(err error) kind {
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			return kind
		}
	}
	return kind{name: "other", fault: true}
}
