package azblob

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// fake implements the part of the blob service's protocol that the driver uses, with the error
// codes of the service.
type fake struct {
	mu         sync.Mutex
	containers map[string]map[string]*fakeBlob
	generation int
}

type fakeBlob struct {
	committed bool
	data      []byte
	header    http.Header
	blocks    map[string][]byte // uncommitted
}

// startFake starts a fake and returns its endpoint.
func startFake(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(&fake{containers: map[string]map[string]*fakeBlob{}})
	t.Cleanup(server.Close)
	return server.URL + "/" + servers.AzuriteAccount
}

// startAnswering starts a service that refuses every request, and returns its endpoint.
func startAnswering(t *testing.T, status int, code string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, code) }))
	t.Cleanup(server.Close)
	return server.URL + "/" + servers.AzuriteAccount
}

// refuse responds with an error of the service.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-ms-request-id", "1")
	if !strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey "+servers.AzuriteAccount+":") {
		refuse(w, http.StatusForbidden, "AuthenticationFailed")
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	path := strings.TrimPrefix(r.URL.Path, "/"+servers.AzuriteAccount+"/")
	container, key, _ := strings.Cut(path, "/")
	if found := f.answer(w, r, container, key, body); found != nil {
		get(w, r, found)
	}
}

// answer handles all requests except reads of existing blobs. For those it returns the blob, which
// never changes once committed.
func (f *fake) answer(w http.ResponseWriter, r *http.Request, container, key string, body []byte) *fakeBlob {
	f.mu.Lock()
	defer f.mu.Unlock()
	blobs, ok := f.containers[container]
	switch {
	case r.Method == http.MethodPut && key == "":
		f.containers[container] = map[string]*fakeBlob{}
		w.WriteHeader(http.StatusCreated)
	case !ok:
		refuse(w, http.StatusNotFound, "ContainerNotFound")
	case key == "":
		list(w, r, blobs)
	case r.Method == http.MethodPut:
		f.put(w, r, blobs, key, body)
	case blobs[key] == nil || !blobs[key].committed:
		refuse(w, http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete && r.Header.Get("If-Match") != "" && r.Header.Get("If-Match") != blobs[key].header.Get("ETag"):
		refuse(w, http.StatusPreconditionFailed, "ConditionNotMet")
	case r.Method == http.MethodDelete:
		delete(blobs, key)
		w.WriteHeader(http.StatusAccepted)
	default:
		return blobs[key]
	}
	return nil
}

// put handles Put Blob, Put Block and Put Block List.
func (f *fake) put(w http.ResponseWriter, r *http.Request, blobs map[string]*fakeBlob, key string, body []byte) {
	b := cmp.Or(blobs[key], &fakeBlob{blocks: map[string][]byte{}})
	operation := r.URL.Query().Get("comp")
	if operation == "block" {
		if source := r.Header.Get("x-ms-copy-source"); source != "" {
			var code string
			if body, code = f.source(r, source); code != "" {
				refuse(w, cmp.Or(sourceStatuses[code], http.StatusBadRequest), code)
				return
			}
		}
		b.blocks[r.URL.Query().Get("blockid")] = body
		blobs[key] = b
		w.WriteHeader(http.StatusCreated)
		return
	}
	if match := r.Header.Get("If-Match"); match != "" && (!b.committed || match != b.header.Get("ETag")) {
		refuse(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	// Put Blob treats uncommitted blocks as a blob, like Azurite.
	if (b.committed || operation == "" && len(b.blocks) > 0) && r.Header.Get("If-None-Match") == "*" {
		refuse(w, http.StatusConflict, "BlobAlreadyExists")
		return
	}
	if operation == "blocklist" {
		var ids struct {
			Latest []string
		}
		if err := xml.Unmarshal(body, &ids); err != nil {
			refuse(w, http.StatusBadRequest, "InvalidXmlDocument")
			return
		}
		body = nil
		for _, id := range ids.Latest {
			block, ok := b.blocks[id]
			if !ok {
				refuse(w, http.StatusBadRequest, "InvalidBlockList")
				return
			}
			body = append(body, block...)
		}
	}
	f.generation++
	header := http.Header{}
	for name, values := range r.Header {
		if strings.HasPrefix(name, "X-Ms-Meta-") {
			header[name] = values
		}
	}
	header.Set("ETag", fmt.Sprintf(`"0x%X"`, f.generation))
	header.Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Content-Type", r.Header.Get("x-ms-blob-content-type"))
	header.Set("Cache-Control", r.Header.Get("x-ms-blob-cache-control"))
	blobs[key] = &fakeBlob{true, body, header, map[string][]byte{}} // all uncommitted blocks are gone
	w.Header().Set("ETag", header.Get("ETag"))
	w.Header().Set("Last-Modified", header.Get("Last-Modified"))
	w.WriteHeader(http.StatusCreated)
}

var sourceStatuses = map[string]int{
	"SourceConditionNotMet": http.StatusPreconditionFailed, "CannotVerifyCopySource": http.StatusNotFound,
}

// source returns the bytes of the source of Put Block From URL, or the code of an error.
func (f *fake) source(r *http.Request, address string) (data []byte, code string) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Query().Get("sig") == "" {
		return nil, "InvalidHeaderValue"
	}
	container, key, _ := strings.Cut(strings.TrimPrefix(parsed.Path, "/"+servers.AzuriteAccount+"/"), "/")
	b := f.containers[container][key]
	if b == nil || !b.committed {
		return nil, "CannotVerifyCopySource"
	}
	if r.Header.Get("x-ms-source-if-match") != b.header.Get("ETag") {
		return nil, "SourceConditionNotMet"
	}
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("x-ms-source-range"), "bytes=%d-%d", &from, &to); err != nil {
		return nil, "InvalidHeaderValue"
	}
	return b.data[from : to+1], ""
}

// get handles Get Blob and Get Blob Properties.
func get(w http.ResponseWriter, r *http.Request, b *fakeBlob) {
	if match := r.Header.Get("If-Match"); match != "" && match != b.header.Get("ETag") {
		refuse(w, http.StatusPreconditionFailed, "ConditionNotMet")
		return
	}
	data, status := b.data, http.StatusOK
	header := b.header.Clone()
	if wanted, ok := strings.CutPrefix(r.Header.Get("x-ms-range"), "bytes="); ok {
		first, last, _ := strings.Cut(wanted, "-")
		from, _ := strconv.Atoi(first)
		to, err := strconv.Atoi(last)
		if err != nil || to >= len(data) {
			to = len(data) - 1
		}
		if from >= len(data) {
			refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
		data, status = data[from:to+1], http.StatusPartialContent
	}
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, bytes.NewReader(data))
	}
}

type fakeList struct {
	XMLName    xml.Name     `xml:"EnumerationResults"`
	Blobs      []fakeItem   `xml:"Blobs>Blob"`
	Prefixes   []fakePrefix `xml:"Blobs>BlobPrefix"`
	NextMarker string
}

type fakePrefix struct{ Name string }

type fakeItem struct {
	Name       string
	Properties struct {
		LastModified  string `xml:"Last-Modified"`
		Etag          string
		ContentLength int `xml:"Content-Length"`
	}
}

// list handles List Blobs; the marker is the first key or prefix of the next page.
func list(w http.ResponseWriter, r *http.Request, blobs map[string]*fakeBlob) {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("maxresults"))
	if err != nil {
		limit = 5000
	}
	var keys []string
	for key, b := range blobs {
		rest, ok := strings.CutPrefix(key, query.Get("prefix"))
		if slash := strings.Index(rest, "/"); slash >= 0 && query.Get("delimiter") == "/" {
			key = key[:len(key)-len(rest)+slash+1]
		}
		if b.committed && ok && key >= query.Get("marker") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var answer fakeList
	if len(keys) > limit {
		answer.NextMarker = keys[limit]
		keys = keys[:limit]
	}
	for _, key := range keys {
		if blobs[key] == nil {
			answer.Prefixes = append(answer.Prefixes, fakePrefix{key})
			continue
		}
		item := fakeItem{Name: key}
		item.Properties.LastModified = blobs[key].header.Get("Last-Modified")
		item.Properties.Etag = strings.Trim(blobs[key].header.Get("ETag"), `"`)
		item.Properties.ContentLength = len(blobs[key].data)
		answer.Blobs = append(answer.Blobs, item)
	}
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}
