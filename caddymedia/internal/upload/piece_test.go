package upload

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// TestPieces: a form with one of several pieces of a file is refused, in front of the file or
// behind it. One with a single piece is stored.
func TestPieces(t *testing.T) {
	t.Parallel()
	const message = "or use /api/upload/file/resumable"
	for _, c := range []struct {
		name, several, single string
	}{
		{"dztotalchunkcount", "3", "1"},
		{"chunks", "2", "1"},
		{"resumableTotalChunks", "2", "1"},
		{"flowTotalChunks", "12", "1"},
		{"qqtotalparts", "2", "1"},
		{"total-chunk", "2", "1"},
		{"totalChunks", " 2 ", "0"},
		{"metadata", `{"chunkIndex":0,"fileName":"a.txt","totalChunks":2}`, `{"chunkIndex":0,"totalChunks":1}`},
		{"metadata", `{"totalChunks":"10"}`, `{"total":3}`},
		{"metadata", `{"totalChunks":3,"fileName":7}`, `not JSON`},
		{"metadata.totalChunks", "2", "1"},
		{"chunkMetadata", `{"FileName":"a.txt","Index":0,"TotalCount":5}`, `{"Index":0,"TotalCount":1}`},
		{"chunkMetadata", `{"ChunkIndex":0,"TotalChunks":2}`, `[2]`},
		{"Chunks", "2", "many"},
		{"DZTOTALCHUNKCOUNT", "2", ""},
		{"chunks", "2", "-2"},
	} {
		t.Run(c.name+" "+c.several, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s))
			note := file("a.txt", "text")
			for _, parts := range [][]send{{field(c.name, c.several), note}, {note, field(c.name, c.several)}, {note, field("chunk", "0"), field(c.name, c.several), note}} {
				_, failures := uploadForm(t, u, parts...)
				wantFailure(t, failures, item.BadRequest, "", message)
			}
			if failure := PieceOf(item.File, nil, url.Values{c.name: {"x", c.several}}); failure == nil {
				t.Error("accepted in an address")
			}
			wantContents(t, s, nil)
			if _, failures := uploadForm(t, u, note, field(c.name, c.single)); failures != nil {
				t.Errorf("%q: %v", c.single, failures)
			}
			wantContents(t, s, map[string]string{"file/content/a.txt": "text"})
		})
	}
	for _, name := range []string{"Content-Range", "Upload-Offset"} {
		if failure := PieceOf(item.Image, http.Header{name: {""}}, nil); failure == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	others := url.Values{"chunk": {"3"}, "total": {"3"}, "chunk_size": {"9"}, "my_chunks": {"4"}, "parts": {"2"}, "metadata": {`{"chunks":3}`}}
	if failure := PieceOf(item.File, http.Header{"Upload-Length": {"9"}}, others); failure != nil {
		t.Error(failure)
	}
}
