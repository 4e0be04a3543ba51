package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
)

// WithRewrites returns a proxy in front of a fake-gcs-server that heeds the conditions of rewrites,
// which the server itself ignores. The proxy uploads the bytes of the source instead.
func (g GCS) WithRewrites(t testing.TB) GCS {
	t.Helper()
	target, err := url.Parse(g.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, to, rewrites := strings.Cut(r.URL.EscapedPath(), "/rewriteTo/b/")
		if !rewrites {
			proxy.ServeHTTP(w, r)
			return
		}
		status, answer, err := g.rewrite(r, from, to)
		if err != nil {
			status = http.StatusBadGateway
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return GCS{server.URL}
}

// rewrite uploads the bytes of a source, with the metadata and the condition of a rewrite.
func (g GCS) rewrite(r *http.Request, from, to string) (status int, answer []byte, err error) {
	query := r.URL.Query()
	status, data, err := send(http.NewRequestWithContext(r.Context(), http.MethodGet,
		g.Endpoint+from+"?alt=media&generation="+query.Get("sourceGeneration"), nil))
	if err != nil || status != http.StatusOK {
		return status, []byte(`{"error":{"code":404,"message":"no source"}}`), err
	}
	bucket, name, _ := strings.Cut(to, "/o/")
	if name, err = url.PathUnescape(name); err != nil {
		return 0, nil, err
	}
	metadata := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&metadata); err != nil {
		return 0, nil, err
	}
	metadata["name"] = name
	head, err := json.Marshal(metadata)
	if err != nil {
		return 0, nil, err
	}
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	kind := "application/json"
	for _, part := range [][]byte{head, data} {
		w, _ := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}}) // a buffer has room
		_, _ = w.Write(part)
		kind = fmt.Sprint(metadata["contentType"])
	}
	_ = parts.Close()
	upload := url.Values{"uploadType": {"multipart"}, "name": {name}}
	if match := query.Get("ifGenerationMatch"); match != "" {
		upload.Set("ifGenerationMatch", match)
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost,
		g.Endpoint+"/upload/storage/v1/b/"+bucket+"/o?"+upload.Encode(), &body)
	if err == nil {
		request.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
	}
	status, answer, err = send(request, err)
	if status == http.StatusOK {
		answer = fmt.Appendf(nil, `{"done":true,"objectSize":"%d","totalBytesRewritten":"%[1]d","resource":%s}`, len(data), answer)
	}
	return status, answer, err
}

func send(request *http.Request, err error) (status int, body []byte, _ error) {
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
