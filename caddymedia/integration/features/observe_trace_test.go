package features_test

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// collector receives the spans of Caddy as OTLP over HTTP.
type collector struct {
	url string

	mu    sync.Mutex
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		sent := new(collectorpb.ExportTraceServiceRequest)
		if err == nil {
			err = proto.Unmarshal(body, sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.receive(sent)
		w.Header().Set("Content-Type", "application/x-protobuf") // the empty answer accepts all
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *collector) receive(sent *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				span.Attributes = append(span.Attributes, resource.Resource.Attributes...)
				c.spans = append(c.spans, span)
			}
		}
	}
}

// trace returns the spans of a trace, ordered by their start.
func (c *collector) trace(id string) []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var spans []*tracepb.Span
	for _, span := range c.spans {
		if hex.EncodeToString(span.TraceId) == id {
			spans = append(spans, span)
		}
	}
	slices.SortFunc(spans, func(a, b *tracepb.Span) int {
		return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano)
	})
	return spans
}

// waitForTrace returns the spans of a trace once they include that of the request, which ends last.
// parent is the span of the client.
func (c *collector) waitForTrace(t *testing.T, id, parent string) []*tracepb.Span {
	t.Helper()
	var spans []*tracepb.Span
	site.Eventually(t, "the trace "+id+" is sent", func() bool {
		spans = c.trace(id)
		return slices.ContainsFunc(spans, func(s *tracepb.Span) bool { return hex.EncodeToString(s.ParentSpanId) == parent })
	})
	return spans
}

// spanTree formats the names of the spans below a parent, one per line.
func spanTree(spans []*tracepb.Span, parent string) string {
	var tree strings.Builder
	var grow func(parent, indent string)
	grow = func(parent, indent string) {
		for _, span := range spans {
			if hex.EncodeToString(span.ParentSpanId) == parent {
				tree.WriteString(indent + span.Name + "\n")
				grow(hex.EncodeToString(span.SpanId), indent+"  ")
			}
		}
	}
	grow(parent, "")
	return tree.String()
}

// spanAttribute returns an attribute of the first span of a name, as text.
func spanAttribute(t *testing.T, spans []*tracepb.Span, name, key string) string {
	t.Helper()
	for _, span := range spans {
		for _, a := range span.Attributes {
			if span.Name != name || a.Key != key {
				continue
			}
			switch v := a.Value.Value.(type) {
			case *commonpb.AnyValue_IntValue:
				return fmt.Sprint(v.IntValue)
			case *commonpb.AnyValue_ArrayValue:
				return v.ArrayValue.Values[0].GetStringValue()
			}
			return a.Value.GetStringValue()
		}
	}
	return ""
}

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

// tracedChild runs the documented site with tracing. It also returns a collector, and a function
// that returns a client with a new trace.
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

// TestTraces: the trace of the client continues in a Caddy that sends its spans to a collector, and
// the span of the request is the root of the service's spans. They have no secrets.
func TestTraces(t *testing.T) {
	t.Parallel()
	const secret = "not-for-eyes"
	c, sent, newClient := tracedChild(t, site.ImageConfig("")+`
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
	c.HTTP1().MustPut(t, token, "small", "a.bin", []byte("content"))
	image := func(name, content string) func(*site.Client) (int, error) {
		return func(client *site.Client) (int, error) {
			answer, err := client.Send(t.Context(), token, "image", strings.NewReader(site.ImageForm(name, content)))
			return answer.Status, err
		}
	}
	for _, tt := range []struct {
		what   string
		do     func(*site.Client) (status int, err error)
		status int
		tree   string
		errors string
		has    [][3]string // spans, with an attribute and its value
	}{
		{
			"a stored image", image("photo.jpg", sample.PhotoJPEG(641, 480)), http.StatusOK,
			//nolint:dupword // one span for the variant, one for the image
			`media
  media.receive
  media.check
    media.variant
      media.storage.stage
    media.storage.stage
  media.commit
    media.storage.commit
`, "",
			[][3]string{
				{"media", "service.name", "media"},
				{"media.receive", "media.alias.kind", "img"},
				{"media.receive", "media.alias.name", "content"},
				{"media.check", "media.storage.name", "keep"},
				{"media.check", "media.files", "1"},
				{"media.commit", "media.filename", "photo.jpg"},
				{"media.storage.commit", "media.files", "2"}, // with the variant
				{"media.storage.commit", "media.storage.name", "keep"},
			},
		},
		{
			"a refused one", image("text.jpg", "no image"), http.StatusUnsupportedMediaType, "media\n  media.receive\n  media.check\n", "",
			[][3]string{{"media.check", "media.result", "bad_content"}},
		},
		{
			"a dead storage", func(client *site.Client) (int, error) {
				answer, err := client.Upload(t.Context(), token, "far", site.StreamPart{Name: "a.txt", Body: strings.NewReader("content")})
				return answer.Status, err
			}, http.StatusServiceUnavailable,
			"media\n  media.receive\n  media.check\n  media.commit\n    media.storage.commit\n",
			"media.commit: unavailable; media.storage.commit: commit: unavailable", nil,
		},
		{
			"a download", func(client *site.Client) (int, error) {
				return client.FetchURL(t, "/static/file/small/a.bin").Status, nil
			}, http.StatusOK, "media\n  media.storage.open\n", "", nil,
		},
	} {
		client, parent := newClient()
		if status, err := tt.do(client); err != nil || status != tt.status {
			t.Fatalf("%s: status %d, error %v", tt.what, status, err)
		}
		spans := sent.waitForTrace(t, parent.trace, parent.span)
		if got := spanTree(spans, parent.span); got != tt.tree || len(spans) != strings.Count(tt.tree, "\n") {
			t.Errorf("%s: the trace of %d spans is\n%swant\n%s", tt.what, len(spans), got, tt.tree)
		}
		var failed []string
		for _, span := range spans {
			if !strings.HasPrefix(span.Name, "media.") {
				continue // that of the server has the addresses of both sides
			}
			if span.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
				failed = append(failed, span.Name+": "+span.Status.Message)
			}
			for _, word := range []string{secret, "somebody", "127.0.0.1"} {
				if strings.Contains(span.String(), word) {
					t.Errorf("%s: a span contains %q: %v", tt.what, word, span)
				}
			}
		}
		if got := strings.Join(failed, "; "); got != tt.errors {
			t.Errorf("%s: the errors are %q, want %q", tt.what, got, tt.errors)
		}
		for _, want := range tt.has {
			if got := spanAttribute(t, spans, want[0], want[1]); got != want[2] {
				t.Errorf("%s: %s has %s %q, want %q", tt.what, want[0], want[1], got, want[2])
			}
		}
	}
}
