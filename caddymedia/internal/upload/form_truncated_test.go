package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// TestTruncatedBody: nothing is stored of a form that is truncated, at whatever byte.
func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	body := formBody(
		field("alias", "content"), file("a.txt", "first\r\n--bound"), field("sub_folder", "folder"),
		file("b.txt", ""), send{"files[]", "c.txt", "third\n"},
	)
	for _, lines := range []string{"\r\n", "\n"} {
		for name, open := range storages {
			t.Run(fmt.Sprintf("%s %q", name, lines), func(t *testing.T) {
				t.Parallel()
				body := bytes.ReplaceAll(body, []byte("\r\n"), []byte(lines))
				complete := len(body)
				if lines == "\r\n" { // with RFC 2046's line breaks the last one may be missing
					complete -= len(lines)
				}
				s := open(t, nil)
				u := newUploader(newAlias(t, item.DefaultAlias, s))
				for n := range complete {
					_, failures := uploadBody(t, u, bytes.NewReader(body[:n]), Upload{Request: Request{Kind: item.File}})
					if failures == nil {
						t.Fatalf("%d of %d bytes are accepted as a form: %q", n, len(body), body[:n])
					}
					wantFailure(t, failures, item.BadRequest, "", "")
				}
				wantContents(t, s, nil)
				if _, failures := uploadBody(t, u, bytes.NewReader(body[:complete]), Upload{Request: Request{Kind: item.File}}); failures != nil {
					t.Errorf("the complete form: %v", failures)
				}
			})
		}
	}
}

// TestAbortedBody: nothing is stored if the connection fails within the body.
func TestAbortedBody(t *testing.T) {
	t.Parallel()
	body := formBody(file("a.txt", "first"), file("b.txt", "second"))
	s := onMemory(t, nil)
	u := newUploader(newAlias(t, item.DefaultAlias, s))
	for n := range len(body) - len("--\r\n") {
		broken := io.MultiReader(bytes.NewReader(body[:n]), iotest.ErrReader(errors.New(secret)))
		if _, failures := uploadBody(t, u, broken, Upload{Request: Request{Kind: item.File}}); failures == nil {
			t.Errorf("%d of %d bytes are accepted as a form", n, len(body))
		}
	}
	wantContents(t, s, nil)
}

// TestWholeBody: neither the size of reads nor bytes behind the form make a difference.
func TestWholeBody(t *testing.T) {
	t.Parallel()
	body := string(formBody(file("a.txt", "first"), file("b.txt", strings.Repeat("second", 5000))))
	for name, r := range map[string]io.Reader{
		"one byte":          iotest.OneByteReader(strings.NewReader(body)),
		"half":              iotest.HalfReader(strings.NewReader(body)),
		"end with the data": iotest.DataErrReader(strings.NewReader(body)),
		"epilogue":          strings.NewReader(body + "epilogue\r\n--boundary\r\nwhatever"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			if _, failures := uploadBody(t, newUploader(newAlias(t, item.DefaultAlias, s)), r, Upload{Request: Request{Kind: item.File}}); failures != nil {
				t.Error(failures)
			}
			wantContents(t, s, map[string]string{
				"file/content/a.txt": "first", "file/content/b.txt": strings.Repeat("second", 5000),
			})
		})
	}
}
