package features_test

import (
	"crypto/rand"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// traceParent is the traceparent that a client adds to its requests.
type traceParent struct{ trace, span string }

func newTraceParent() traceParent {
	id := make([]byte, 24)
	_, _ = rand.Read(id) // never fails
	return traceParent{hex.EncodeToString(id[:16]), hex.EncodeToString(id[16:])}
}

func (p traceParent) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Traceparent", "00-"+p.trace+"-"+p.span+"-01")
	return http.DefaultTransport.RoundTrip(r)
}

// tracedChild runs the documented site with tracing. It also returns a collector, and a function that
// returns a client with a new trace.
func tracedChild(t *testing.T, media string) (*site.Child, *collector, func() (*site.Client, traceParent)) {
	t.Helper()
	sent := newCollector(t)
	const endpoint = "http://127.0.0.1:4318"
	_, command, _ := strings.Cut(pages.Text(t, "metrics.md"), "OTEL_EXPORTER_OTLP_ENDPOINT="+endpoint+" ")
	more, rest, ok := strings.Cut(command, " ")
	if !ok || !strings.HasPrefix(rest, "caddy run\n") {
		t.Fatal("metrics.md lacks a command with " + endpoint)
	}
	c := site.NewChild(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+sent.url, more, "OTEL_BSP_SCHEDULE_DELAY=50")
	address := servers.FreeAddress(t)
	const host = "media.example.com"
	block := pages.Example(t, "metrics.md", "caddyfile", host+" {\n\ttracing {")
	if !strings.Contains(block, host+" {") {
		t.Fatalf("the example lacks the site %s:\n%s", host, block)
	}
	c.Sites = strings.Replace(block, host, "http://"+address, 1)
	c.Start(media)
	site.Eventually(t, "the site with tracing listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return c, sent, func() (*site.Client, traceParent) {
		parent := newTraceParent()
		return c.NewClient("HTTP/1.1", "http://"+address, parent), parent
	}
}

func namesOnly(*tracepb.Span) string { return "" }

// TestTraceOfUpload uploads images to a Caddy that sends its spans to a collector. The trace of
// the client continues, and the span of the request is the root of the service's spans.
func TestTraceOfUpload(t *testing.T) {
	t.Parallel()
	c, sent, client := tracedChild(t, site.ImageConfig(""))
	token := c.HTTP1().MustLogin(t)
	upload := func(name, content string, status int) ([]*tracepb.Span, traceParent) {
		t.Helper()
		client, parent := client()
		answer, err := client.SendImage(t.Context(), token, strings.NewReader(site.ImageForm(name, content)))
		if err != nil || answer.Status != status {
			t.Fatalf("%s: %v %v", name, answer, err)
		}
		spans := sent.waitForTrace(t, parent.trace, parent.span)
		t.Logf("%s, answered with %d:\n%s", name, status, spanTree(spans, parent.span, spanFacts))
		return spans, parent
	}

	spans, parent := upload("photo.jpg", sample.PhotoJPEG(641, 480), http.StatusOK)
	//nolint:dupword // one span for the variant, one for the image
	wantTraceTree(t, spans, parent, `
media
  media.receive
  media.check
    media.variant
      media.storage.stage
    media.storage.stage
  media.commit
    media.storage.commit
`)
	for _, tt := range []struct{ span, attribute, want string }{
		{"media", "service.name", "media"},
		{"media.receive", "media.alias.kind", "img"},
		{"media.receive", "media.alias.name", "content"},
		{"media.check", "media.storage.name", "keep"},
		{"media.check", "media.files", "1"},
		{"media.commit", "media.filename", "photo.jpg"},
		{"media.storage.commit", "media.files", "2"}, // with the variant
		{"media.storage.commit", "media.storage.name", "keep"},
	} {
		if got := spanAttribute(t, spans, tt.span, tt.attribute); got != tt.want {
			t.Errorf("%s has %s %q, want %q", tt.span, tt.attribute, got, tt.want)
		}
	}

	spans, parent = upload("text.jpg", "no image", http.StatusUnsupportedMediaType)
	wantTraceTree(t, spans, parent, "media\n  media.receive\n  media.check\n")
	if got := spanAttribute(t, spans, "media.check", "media.result"); got != "bad_content" {
		t.Errorf("the check ended with %q", got)
	}
	wantErrors(t, spans, "")
}

// TestTraceOfFailure traces an upload to a storage that does not answer.
func TestTraceOfFailure(t *testing.T) {
	t.Parallel()
	const secret = "not-for-eyes"
	c, sent, newClient := tracedChild(t, "tokens memory\n"+site.Account+`
storage dead {
	driver ftp 127.0.0.1:1 {
		user somebody
		password `+secret+`
	}
}
file_alias far {
	storage dead
}
`)
	token := c.HTTP1().MustLogin(t)
	client, parent := newClient()
	answer, err := client.Upload(t.Context(), token, "far", site.StreamPart{Name: "a.txt", Body: strings.NewReader("content")})
	if err != nil || answer.Status != http.StatusServiceUnavailable {
		t.Fatal(answer, err)
	}
	spans := sent.waitForTrace(t, parent.trace, parent.span)
	tree := spanTree(spans, parent.span, spanFacts)
	t.Logf("a storage that does not answer:\n%s", tree)
	wantTraceTree(t, spans, parent, "media\n  media.receive\n  media.check\n  media.commit\n    media.storage.commit\n")
	var ours []*tracepb.Span
	for _, span := range spans {
		if strings.HasPrefix(span.Name, "media.") {
			ours = append(ours, span)
		}
	}
	wantErrors(t, ours, "media.commit: unavailable; media.storage.commit: commit: unavailable")
	for _, word := range []string{secret, "somebody", "127.0.0.1"} {
		if strings.Contains(tree, word) {
			t.Errorf("the spans contain %q:\n%s", word, tree)
		}
	}
}

// TestTraceOfRead traces the download of an item.
func TestTraceOfRead(t *testing.T) {
	t.Parallel()
	c, sent, client := tracedChild(t, site.ImageConfig(""))
	plain := c.HTTP1()
	token := plain.MustLogin(t)
	plain.MustPut(t, token, "small", "a.bin", []byte("content"))
	for path, want := range map[string]string{
		"a.bin":    "media\n  media.storage.open\n",
		"none.bin": "media\n  media.storage.open\n",
	} {
		client, parent := client()
		r, err := client.Get(client.Base + "/static/file/small/" + path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		spans := sent.waitForTrace(t, parent.trace, parent.span)
		t.Logf("%s, answered with %d:\n%s", path, r.StatusCode, spanTree(spans, parent.span, spanFacts))
		wantTraceTree(t, spans, parent, want)
		wantErrors(t, spans, "")
	}
}

func wantTraceTree(t *testing.T, spans []*tracepb.Span, parent traceParent, want string) {
	t.Helper()
	want = strings.TrimPrefix(want, "\n")
	if got := spanTree(spans, parent.span, namesOnly); got != want {
		t.Errorf("the trace is\n%swant\n%s", got, want)
	}
	if n := strings.Count(want, "\n"); len(spans) != n {
		t.Errorf("the trace has %d spans, want %d", len(spans), n)
	}
}

// wantErrors checks which of the service's spans are errors.
func wantErrors(t *testing.T, spans []*tracepb.Span, want string) {
	t.Helper()
	var failed []string
	for _, span := range spans {
		if span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			failed = append(failed, span.Name+": "+span.Status.Message)
		}
	}
	if got := strings.Join(failed, "; "); got != want {
		t.Errorf("the errors are %q, want %q", got, want)
	}
}
