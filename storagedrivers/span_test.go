package storagedrivers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// traced calls f in a span and returns the child spans that ended, one line each: name, attributes
// and status.
func traced(t *testing.T, f func(ctx context.Context)) []string {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	ctx, root := provider.Tracer("test").Start(t.Context(), "request")
	f(ctx)
	spans := recorder.Ended()
	lines := make([]string, len(spans))
	for i, span := range spans {
		test.Equal(t, span.Parent().SpanID(), root.SpanContext().SpanID(), span.Name(), "is no child of the request's span")
		lines[i] = line(span)
	}
	test.Equal(t, len(recorder.Started())-1, len(lines), "spans were begun and", "ended")
	root.End()
	return lines
}

func line(span sdktrace.ReadOnlySpan) string {
	set := attribute.NewSet(span.Attributes()...) // in the order of their names
	words := []string{span.Name()}
	for _, a := range set.ToSlice() {
		words = append(words, string(a.Key)+"="+a.Value.String())
	}
	for _, event := range span.Events() {
		words = append(words, "event="+event.Name)
	}
	if status := span.Status(); status.Code != codes.Unset {
		words = append(words, fmt.Sprintf("%v=%q", status.Code, status.Description))
	}
	return strings.Join(words, " ")
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("the spans are\n%s\nwant\n%s", g, w)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storagedrivers.Driver{
		"memory": memory.New(), "local": local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, driver, storagedrivers.Options{})
			want := []string{
				"media.storage.commit media.key=staged media.size=6 media.storage.name=test",
				"media.storage.put media.key=key media.size=4 media.storage.name=test",
				"media.storage.stat media.key=key media.size=4 media.storage.name=test",
				"media.storage.open media.key=key media.size=4 media.storage.name=test",
				"media.storage.list media.files=2 media.storage.name=test",
				"media.storage.check media.storage.name=test",
				"media.storage.delete media.key=key media.storage.name=test",
				"media.storage.presign media.key=key media.result=unsupported media.storage.name=test",
			}
			if name == "local" { // takes the bytes where they stay
				want = append([]string{"media.storage.stage media.storage.name=test"}, want...)
			}
			wantLines(t, traced(t, func(ctx context.Context) { useAll(ctx, t, s) }), want...)
		})
	}
}

func useAll(ctx context.Context, t *testing.T, s *storagedrivers.Storage) {
	t.Helper()
	staged, err := s.Stage(ctx)
	test.Is(t, err, nil)
	_, err = staged.Write([]byte("staged"))
	test.Is(t, err, nil)
	err = commit(ctx, s, staged, "staged", overwrite)
	test.Is(t, err, nil)
	test.Is(t, staged.Close(), nil)
	_, err = s.Put(ctx, "key", strings.NewReader("text"), create)
	test.Is(t, err, nil)
	_, err = s.Stat(ctx, "key")
	test.Is(t, err, nil)
	body, _, err := s.Open(ctx, "key", all)
	test.Is(t, err, nil)
	test.Is(t, body.Close(), nil)
	_, err = s.List(ctx, storagedrivers.ListOptions{})
	test.Is(t, err, nil)
	test.Is(t, s.Check(ctx), nil)
	test.Is(t, s.Delete(ctx, "key"), nil)
	_, err = s.Presign(ctx, "key", storagedrivers.PresignOptions{})
	test.Is(t, err, errors.ErrUnsupported)
}

// TestSpanErrors: a span contains the kind of an error, never its text. Faults of the storage set
// an error status, other answers do not.
func TestSpanErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{storagedrivers.ErrUnavailable, "unavailable Error"},
		{errors.Join(storagedrivers.ErrUnavailable, fs.ErrNotExist), "unavailable Error"},
		{storagedrivers.ErrNoSpace, "no_space Error"},
		{storagedrivers.ErrSizeMismatch, "size_mismatch Error"},
		{fs.ErrPermission, "permission Error"},
		{errors.New("unforeseen"), "other Error"},
		{context.Canceled, "canceled"},
		{storagedrivers.ErrInvalidKey, "invalid_key"},
		{storagedrivers.ErrInvalidRange, "invalid_range"},
		{storagedrivers.ErrInUse, "in_use"},
		{storagedrivers.ErrChanged, "changed"},
		{fs.ErrExist, "exists"},
		{fs.ErrNotExist, "not_found"},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := memory.New()
				d.Fail = func(string, string) error { return fmt.Errorf("dial 10.1.2.3 /srv/secret: %w", tt.err) }
				s := open(t, d, storagedrivers.Options{})
				got := traced(t, func(ctx context.Context) {
					_, err := s.Stat(ctx, "key")
					test.Is(t, err, tt.err)
				})
				kind, fault := strings.CutSuffix(tt.want, " Error")
				want := "media.storage.stat media.key=key media.result=" + kind + " media.storage.name=test"
				if errors.Is(tt.err, storagedrivers.ErrUnavailable) && !errors.Is(tt.err, storagedrivers.ErrInUse) {
					want += strings.Repeat(" event=again", 2)
				}
				if fault {
					want += fmt.Sprintf(" Error=%q", "stat: "+kind)
				}
				wantLines(t, got, want)
			})
		})
	}
}

// TestSpanOfMissingRoot: a missing root is a fault of the backend in operations that request no
// object.
func TestSpanOfMissingRoot(t *testing.T) {
	t.Parallel()
	d := memory.New()
	d.Fail = func(string, string) error { return fs.ErrNotExist }
	s := open(t, d, storagedrivers.Options{})
	wantLines(t, traced(t, func(ctx context.Context) {
		test.Is(t, s.Check(ctx), fs.ErrNotExist)
		_, err := s.Stat(ctx, "key")
		test.Is(t, err, fs.ErrNotExist)
	}), `media.storage.check media.result=not_found media.storage.name=test Error="check: not_found"`,
		"media.storage.stat media.key=key media.result=not_found media.storage.name=test")
}

// TestSpanOfRest: an operation that is not tried has a span with the reason.
func TestSpanOfRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := memory.New()
		d.Fail = func(string, string) error { return storagedrivers.ErrUnavailable }
		s := open(t, d, storagedrivers.Options{})
		for range 5 {
			_, err := s.Stat(t.Context(), "key")
			test.Is(t, err, storagedrivers.ErrUnavailable)
		}
		const failed = ` media.result=unavailable media.storage.name=test Error="`
		wantLines(t, traced(t, func(ctx context.Context) {
			_, err := s.Stage(ctx)
			test.Is(t, err, storagedrivers.ErrUnavailable)
			test.Is(t, s.Delete(ctx, "key"), storagedrivers.ErrUnavailable)
		}), "media.storage.stage"+failed+`stage: unavailable"`, "media.storage.delete media.key=key"+failed+`delete: unavailable"`)
	})
}

// TestUntraced: there are no spans for a request that is not sampled, and none below a span that
// has ended.
func TestUntraced(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{})
	for name, sampler := range map[string]sdktrace.Sampler{
		"not sampled": sdktrace.NeverSample(), "ended": sdktrace.AlwaysSample(),
	} {
		recorder := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sampler))
		ctx, root := provider.Tracer("test").Start(t.Context(), "request")
		root.End()
		useAll(ctx, t, s)
		for _, span := range recorder.Started() {
			test.Equal(t, span.Name(), "request", name)
		}
	}
}
