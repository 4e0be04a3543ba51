package mediacmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// patch answers a PATCH request.
type patch func(f *fakeUpload, w http.ResponseWriter, r *http.Request)

// fakeUpload imitates the resumable upload of one file.
type fakeUpload struct {
	*fakeService
	length, offset int64
	metadata       string
	requests       []string // methods
	// answers to the PATCH requests, the next first. A nil one stores the rest.
	answers []patch
	refusal http.HandlerFunc // of the item
}

func newFakeUpload(t *testing.T, answers ...patch) *fakeUpload {
	t.Helper()
	f := &fakeUpload{fakeService: newFakeService(t), answers: answers}
	logIn := f.Config.Handler
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/upload/file/resumable") {
			f.serve(w, r)
		} else {
			logIn.ServeHTTP(w, r)
		}
	})
	return f
}

func (f *fakeUpload) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method)
	w.Header().Set("Tus-Resumable", "1.0.0")
	switch r.Method {
	case http.MethodPost:
		f.length, _ = strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64)
		f.metadata = r.Header.Get("Upload-Metadata")
		w.Header().Set("Location", "/api/upload/file/resumable/1")
		w.WriteHeader(http.StatusCreated)
	case http.MethodPatch:
		if r.Header.Get("Upload-Offset") != fmt.Sprint(f.offset) {
			w.WriteHeader(http.StatusConflict)
			return
		}
		var next patch
		if len(f.answers) > 0 {
			next, f.answers = f.answers[0], f.answers[1:]
		}
		if next != nil {
			next(f, w, r)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		f.offset += n
		w.WriteHeader(http.StatusNoContent)
	case http.MethodGet:
		switch {
		case f.refusal != nil:
			f.refusal(w, r)
		case f.offset == f.length:
			io.WriteString(w, `{"success":true,"result":[{"full_path":"https://cdn/a.bin"}]}`)
		default:
			json.NewEncoder(w).Encode(map[string]any{"success": true, "offset": f.offset, "length": f.length})
		}
	}
}

// after returns an answer that stores n bytes and aborts the connection.
func after(n int64) patch {
	return func(f *fakeUpload, _ http.ResponseWriter, r *http.Request) {
		stored, _ := io.CopyN(io.Discard, r.Body, n)
		f.offset += stored
		panic(http.ErrAbortHandler)
	}
}

// TestUploadResumes: a large file continues after a cut connection in the same run, and nothing of a
// failed upload stays on the service.
func TestUploadResumes(t *testing.T) {
	t.Parallel()
	const size = resumeFrom + 1000
	answer := func(handler http.HandlerFunc) patch {
		return func(_ *fakeUpload, w http.ResponseWriter, r *http.Request) { handler(w, r) }
	}
	lost := func(f *fakeUpload, w http.ResponseWriter, r *http.Request) {
		f.refusal = answering(http.StatusGone, `{"errors":[{"message":"content is PNG"}]}`)
		after(size)(f, w, r)
	}
	for name, test := range map[string]struct {
		answers  []patch
		requests string
		fails    string // empty: it is stored
	}{
		"at once":       {nil, "POST PATCH GET", ""},
		"cut":           {[]patch{after(1000), after(size / 2)}, "POST PATCH GET PATCH GET PATCH GET", ""},
		"busy":          {[]patch{answer(busy("3"))}, "POST PATCH GET PATCH GET", ""},
		"lost answer":   {[]patch{after(size)}, "POST PATCH GET", ""},
		"refused":       {[]patch{answer(answering(415, `{"errors":[{"message":"no"}]}`))}, "POST PATCH DELETE", "no"},
		"lost refusal":  {[]patch{lost}, "POST PATCH GET DELETE", "content is PNG"},
		"not for ever":  {slices.Repeat([]patch{after(0)}, 20), "POST PATCH" + strings.Repeat(" GET PATCH", resumeTries-1) + " DELETE", "sending: EOF"},
		"slow progress": {slices.Repeat([]patch{after(1000)}, 20), "POST" + strings.Repeat(" PATCH GET", 21), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeUpload(t, test.answers...)
			path := aFile(t, "a.bin", "")
			if err := os.Truncate(path, size); err != nil {
				t.Fatal(err)
			}
			item, sent, err := f.client(t).send(t, path, upload{kind: "file", alias: "films"})
			if got := strings.Join(f.requests, " "); got != test.requests {
				t.Errorf("requests %s, want %s", got, test.requests)
			}
			if test.fails != "" {
				if err == nil || err.Error() != test.fails {
					t.Errorf("error %v, want %s", err, test.fails)
				}
			} else if err != nil || item.FullPath != "https://cdn/a.bin" || f.offset != size || sent != size {
				t.Errorf("%+v, %d bytes sent, %d stored, error %v", item, sent, f.offset, err)
			}
			if f.metadata != "alias ZmlsbXM=,filename YS5iaW4=" {
				t.Errorf("the metadata is %s", f.metadata)
			}
		})
	}
}

// TestUploadOfChangingFile: a file that changes is not continued, as its parts would not fit.
func TestUploadOfChangingFile(t *testing.T) {
	t.Parallel()
	path := aFile(t, "a.bin", "")
	if err := os.Truncate(path, resumeFrom); err != nil {
		t.Fatal(err)
	}
	f := newFakeUpload(t, func(f *fakeUpload, w http.ResponseWriter, r *http.Request) {
		if err := os.Truncate(path, 2*resumeFrom); err != nil {
			t.Error(err)
		}
		after(1000)(f, w, r)
	})
	if _, _, err := f.client(t).send(t, path, upload{kind: "file"}); !errors.Is(err, errChanged) {
		t.Errorf("error %v", err)
	}
}

// TestUploadLocation: an upload on another host would get the token.
func TestUploadLocation(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"", "//example.com/1", "https://127.0.0.1/1", "http://[::1"} {
		f := newFakeService(t)
		f.refuse["/api/upload/file/resumable"] = []http.HandlerFunc{answering(http.StatusCreated, "", "Location", location)}
		path := aFile(t, "a.bin", "")
		if err := os.Truncate(path, resumeFrom); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.client(t).send(t, path, upload{kind: "file"}); !errors.Is(err, errNotMedia) || len(f.uploads) != 1 {
			t.Errorf("%q: error %v after %d requests", location, err, len(f.uploads))
		}
	}
}
