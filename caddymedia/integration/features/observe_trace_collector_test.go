package features_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
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

	"github.com/caddymedia/media/caddymedia/integration/site"
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

// spanTree formats the spans below a parent, one per line: its name and the result of show.
func spanTree(spans []*tracepb.Span, parent string, show func(*tracepb.Span) string) string {
	var tree strings.Builder
	var grow func(parent, indent string)
	grow = func(parent, indent string) {
		for _, span := range spans {
			if hex.EncodeToString(span.ParentSpanId) == parent {
				tree.WriteString(indent + span.Name + show(span) + "\n")
				grow(hex.EncodeToString(span.SpanId), indent+"  ")
			}
		}
	}
	grow(parent, "")
	return tree.String()
}

// spanFacts returns the time, our attributes and the status of a span.
func spanFacts(span *tracepb.Span) string {
	facts := fmt.Sprintf(" (%.2f ms)", float64(span.EndTimeUnixNano-span.StartTimeUnixNano)/1e6)
	for _, a := range span.Attributes {
		if strings.HasPrefix(a.Key, "media.") {
			facts += " " + a.Key + "=" + attributeText(a.Value)
		}
	}
	for _, event := range span.Events {
		facts += " +" + event.Name
	}
	if status := span.GetStatus(); status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
		facts += fmt.Sprintf(" ERROR %q", status.Message)
	}
	return facts
}

func attributeText(v *commonpb.AnyValue) string {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_ArrayValue:
		var words []string
		for _, one := range v.ArrayValue.Values {
			words = append(words, attributeText(one))
		}
		return strings.Join(words, ",")
	default:
		return fmt.Sprintf("%T", v)
	}
}

// spanAttribute returns an attribute of the first span of a name, as text.
func spanAttribute(t *testing.T, spans []*tracepb.Span, name, key string) string {
	t.Helper()
	for _, span := range spans {
		if span.Name != name {
			continue
		}
		for _, a := range span.Attributes {
			if a.Key == key {
				return attributeText(a.Value)
			}
		}
	}
	return ""
}
