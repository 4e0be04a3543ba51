package upload

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// tracedTree calls f in a span, and returns the child spans as a tree of one line each: name,
// attributes except those that are the same for all, and status.
func tracedTree(t *testing.T, f func(ctx context.Context)) string {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	ctx, root := provider.Tracer("test").Start(t.Context(), "request")
	f(ctx)
	root.End()
	if started, ended := len(recorder.Started()), len(recorder.Ended()); started != ended {
		t.Errorf("%d spans were begun and %d ended", started, ended)
	}
	spans := recorder.Started() // in the order of their beginnings
	var tree strings.Builder
	var grow func(parent trace.SpanID, indent string)
	grow = func(parent trace.SpanID, indent string) {
		for _, span := range spans {
			if span.Parent().SpanID() == parent {
				want := "github.com/caddymedia/media/caddymedia"
				if strings.HasPrefix(span.Name(), "media.storage.") {
					want = "github.com/caddymedia/media/storagedrivers"
				}
				if scope := span.InstrumentationScope().Name; scope != want {
					t.Errorf("%s has the scope %s", span.Name(), scope)
				}
				tree.WriteString(indent + spanLine(span) + "\n")
				grow(span.SpanContext().SpanID(), indent+"  ")
			}
		}
	}
	grow(root.SpanContext().SpanID(), "")
	return tree.String()
}

func spanLine(span sdktrace.ReadOnlySpan) string {
	line := span.Name()
	for _, a := range slices.SortedFunc(slices.Values(span.Attributes()), func(a, b attribute.KeyValue) int {
		return cmp.Compare(a.Key, b.Key)
	}) {
		if a.Key != "media.storage.name" && a.Key != "media.alias.kind" {
			line += fmt.Sprintf(" %s=%v", strings.TrimPrefix(string(a.Key), "media."), a.Value.String())
		}
	}
	if status := span.Status(); status.Code != codes.Unset {
		line += fmt.Sprintf(" %v %q", status.Code, status.Description)
	}
	return line
}

// tracedUpload returns the spans of an upload of images.
func tracedUpload(t *testing.T, u *Uploader, source Source) string {
	t.Helper()
	return tracedTree(t, func(ctx context.Context) {
		items, failures := u.Upload(ctx, Upload{Request: Request{Kind: item.Image}}, source)
		checked(t, items, failures)
	})
}

// formOf returns a form of the parts.
func formOf(parts ...send) Source { return Form(bytes.NewReader(formBody(parts...)), boundary) }

func wantTree(t *testing.T, got, want string, args ...any) {
	t.Helper()
	if want = fmt.Sprintf(strings.TrimPrefix(want, "\n"), args...); got != want {
		t.Errorf("the spans are\n%swant\n%s", got, want)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	u := newUploader(imageAlias(t, onLocal(t, nil)))
	photo := pngOf(red)
	wantTree(t, tracedUpload(t, u, formOf(file("a.png", photo))), `
media.receive alias.name=content files=1 size=%[1]d
  media.storage.stage
media.check alias.name=content files=1 size=%[1]d
  media.variant alias.name=content
    media.storage.stage
media.commit alias.name=content filename=["a.png"] files=1 size=%[1]d
  media.storage.commit files=2 size=%[2]d
`, len(photo), len(photo)+len(webpOf(red)))

	// A name that exists is no error, nor is a variant that cannot be made.
	photo = pngOf(unloved)
	wantTree(t, tracedUpload(t, u, formOf(file("a.png", photo))), `
media.receive alias.name=content files=1 size=%[1]d
  media.storage.stage
media.check alias.name=content files=1 size=%[1]d
  media.variant alias.name=content result=none
media.commit alias.name=content filename=["a-%[2]d.png"] files=1 size=%[1]d
  media.storage.commit key=a.png result=exists size=%[1]d
  media.storage.commit key=a-%[2]d.png size=%[1]d
  media.storage.stat key=a-%[2]d.png size=%[1]d
  media.storage.delete key=a-%[2]d.png.webp
`, len(photo), noon.Unix())
}

// TestSpansOfMemory: spans of a storage that stages in memory, of a form and of a single file.
func TestSpansOfMemory(t *testing.T) {
	t.Parallel()
	photo := pngOf(red)
	for name, source := range map[string]Source{
		"form":   formOf(file("a.png", photo)),
		"single": Single("a.png", strings.NewReader(photo)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUploader(imageAlias(t, onMemory(t, nil)))
			wantTree(t, tracedUpload(t, u, source), `
media.receive alias.name=content files=1 size=%[1]d
media.check alias.name=content files=1 size=%[1]d
  media.variant alias.name=content
media.commit alias.name=content filename=["a.png"] files=1 size=%[1]d
  media.storage.commit key=a.png size=%[1]d
  media.storage.commit key=a.png.webp size=%[2]d
`, len(photo), len(webpOf(red)))
		})
	}
}

// TestSpansOfRefusal: a refused upload is no error of the service, and the spans contain no text of
// the request.
func TestSpansOfRefusal(t *testing.T) {
	t.Parallel()
	const word = "secret-name"
	for _, tt := range []struct {
		name  string
		parts []send
		want  string
	}{
		{"content", []send{file(word+".png", "text")}, `
media.receive alias.name=content files=1 size=4
media.check alias.name=content files=1 result=bad_content size=4
`},
		{"alias", []send{field("alias", word), file("a.png", "text")}, `
media.receive files=0 result=bad_request size=0
`},
		{"form", []send{field("alias", "")}, `
media.receive alias.name=content files=0 result=bad_request size=0
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUploader(imageAlias(t, onMemory(t, nil)))
			got := tracedUpload(t, u, formOf(tt.parts...))
			wantTree(t, got, tt.want)
			if strings.Contains(got, word) {
				t.Errorf("the spans contain %q:\n%s", word, got)
			}
		})
	}
}

// TestSpansOfFailure: if the storage fails, the span of the step has an error status with the
// reason, without the text of the error.
func TestSpansOfFailure(t *testing.T) {
	t.Parallel()
	photo := pngOf(red)
	failing := func(key string) func(op, asked string) error {
		return func(op, asked string) error {
			if op == "commit" && asked == key {
				return fmt.Errorf("%s: %w", secret, storagedrivers.ErrNoSpace)
			}
			return nil
		}
	}
	u := newUploader(imageAlias(t, onLocal(t, failing("a.png.webp"))))
	got := tracedUpload(t, u, formOf(file("a.png", photo)))
	wantTree(t, got, `
media.receive alias.name=content files=1 size=%[1]d
  media.storage.stage
media.check alias.name=content files=1 size=%[1]d
  media.variant alias.name=content
    media.storage.stage
media.commit alias.name=content filename=["a.png"] files=1 result=no_space size=%[1]d Error "no_space"
  media.storage.commit files=2 result=no_space size=%[2]d Error "commit: no_space"
`, len(photo), len(photo)+len(webpOf(red)))
	for word := range strings.FieldsSeq(secret) {
		if strings.Contains(got, word) {
			t.Errorf("the spans contain %q:\n%s", word, got)
		}
	}
}

// TestSpanOfPanic: a step that panics has a span.
func TestSpanOfPanic(t *testing.T) {
	t.Parallel()
	got := tracedTree(t, func(ctx context.Context) {
		defer func() { _ = recover() }()
		_ = item.Traced(ctx, "step", func() []attribute.KeyValue { return nil }, func(context.Context) error { panic("here") })
	})
	wantTree(t, got, "step\n")
}
