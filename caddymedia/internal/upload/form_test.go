package upload

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// TestPartsInAnyOrder: the order of the parts does not matter. The alias is on another storage than
// the default alias.
func TestPartsInAnyOrder(t *testing.T) {
	t.Parallel()
	alias, folder := field("alias", "docs"), field("sub_folder", "A Folder")
	note := file("note.txt", "text")
	for i, parts := range [][]send{
		{alias, folder, note},
		{folder, alias, note},
		{alias, note, folder},
		{folder, note, alias},
		{note, alias, folder},
		{note, folder, alias},
	} {
		for sort, open := range storages {
			t.Run(fmt.Sprint(sort, " ", i), func(t *testing.T) {
				t.Parallel()
				first, second := onMemory(t, nil), open(t, nil)
				u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
				items, failures := uploadForm(t, u, parts...)
				if failures != nil || !slices.Equal(filenames(items), []string{"a-folder/note.txt"}) {
					t.Errorf("stored %v (%v)", items, failures)
				}
				wantContents(t, first, nil)
				wantContents(t, second, map[string]string{"file/docs/a-folder/note.txt": "text"})
			})
		}
	}
}

// TestFormWinsOverAddress: fields of the form take precedence over the address, even over an
// invalid one.
func TestFormWinsOverAddress(t *testing.T) {
	t.Parallel()
	alias, folder, note := field("alias", "docs"), field("sub_folder", "good"), file("note.txt", "text")
	empty := []send{field("alias", ""), field("sub_folder", "")}
	for _, c := range []struct {
		name  string
		req   Upload
		parts []send
		want  string
	}{
		{"the address alone", Upload{Request: Request{Alias: "docs"}, SubFolder: "here"}, []send{note}, "file/docs/here/note.txt"},
		{"an empty field is not given", Upload{Request: Request{Alias: "docs"}, SubFolder: "here"}, append(empty, note), "file/docs/here/note.txt"},
		{"the form", Upload{Request: Request{Alias: "content"}, SubFolder: "here"}, []send{alias, folder, note}, "file/docs/good/note.txt"},
		{"unknown alias in the address", Upload{Request: Request{Alias: "nobody"}}, []send{note, alias}, "file/docs/note.txt"},
		{"bad folder in the address", Upload{SubFolder: "../x"}, []send{alias, note, folder}, "file/docs/good/note.txt"},
		{"bad folder in the address, form first", Upload{SubFolder: "/x"}, []send{folder, note}, "file/content/good/note.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s), newAlias(t, "docs", s))
			c.req.Kind = item.File
			if _, failures := uploadBody(t, u, bytes.NewReader(formBody(c.parts...)), c.req); failures != nil {
				t.Error(failures)
			}
			wantContents(t, s, map[string]string{c.want: "text"})
		})
	}
}

func TestRefusedForms(t *testing.T) {
	t.Parallel()
	note := file("note.txt", "text")
	for _, c := range []struct {
		name     string
		parts    []send
		reason   item.Reason
		filename string
		message  string
	}{
		{"no part", nil, item.BadRequest, "", "no file"},
		{"no file", []send{field("alias", "content")}, item.BadRequest, "", "no file"},
		{"files[] without a file name", []send{field("files[]", "text")}, item.BadRequest, "", "no file"},
		{"alias twice", []send{field("alias", "content"), field("alias", "content"), note}, item.BadRequest, "", "alias is sent twice"},
		{"sub_folder twice", []send{note, field("sub_folder", "a"), field("sub_folder", "")}, item.BadRequest, "", "sub_folder is sent twice"},
		{"unknown alias", []send{field("alias", "nobody"), note}, item.BadRequest, "", `unknown alias "nobody"`},
		{"unknown alias behind", []send{note, field("alias", "nobody")}, item.BadRequest, "", `unknown alias "nobody"`},
		{"alias of the account of others", []send{note, field("alias", "private")}, item.Forbidden, "", `may not use the alias "private"`},
		{"another name of the part", []send{{"picture", "note.txt", "text"}}, item.BadRequest, "note.txt", "files[]"},
		{"another index", []send{{"files[0][1]", "note.txt", "text"}}, item.BadRequest, "note.txt", "files[]"},
		{"bad sub folder", []send{note, field("sub_folder", "a/../b")}, item.BadRequest, "note.txt", "sub folder"},
		{"no extension", []send{file("note", "text")}, item.BadContent, "note", "no extension"},
		{"another extension", []send{file("note.exe", "text")}, item.BadContent, "note.exe", ".exe"},
		{"restricted extension", []send{file("note.php.txt", "text")}, item.BadContent, "note.php.txt", ".php"},
		{"other content", []send{file("note.pdf", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")}, item.BadContent, "note.pdf", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s), newAlias(t, "private", s))
			req := Upload{Request: Request{Kind: item.File, Allows: func(alias string) bool { return alias != "private" }}}
			_, failures := uploadBody(t, u, bytes.NewReader(formBody(c.parts...)), req)
			wantFailure(t, failures, c.reason, c.filename, c.message)
			wantContents(t, s, nil)
		})
	}
}

func TestEveryFailingFileIsNamed(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	_, failures := uploadForm(t, newUploader(newAlias(t, item.DefaultAlias, s)),
		file("a.exe", "1"), file("good.txt", "2"), file("b.sh", "3"), file("c.txt", strings.Repeat("4", 1<<20+1)))
	if len(failures) != 3 {
		t.Fatalf("failures %v, want 3", failures)
	}
	wantFailure(t, failures, item.BadContent, "a.exe", "")
	wantFailure(t, failures[1:], item.BadContent, "b.sh", "")
	wantFailure(t, failures[2:], item.TooLarge, "c.txt", "1 MiB")
	wantContents(t, s, nil)
}

func TestNamesOfParts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"files", "files[]", "files[0]", "files[17]", "files[key]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			_, failures := uploadForm(t, newUploader(newAlias(t, item.DefaultAlias, s)),
				send{name, "a.txt", "text"}, field("unknown", "field"))
			if failures != nil {
				t.Error(failures)
			}
			wantContents(t, s, map[string]string{"file/content/a.txt": "text"})
		})
	}
}

// TestFileInputLeftEmpty: the part that browsers send for an empty file input is ignored.
func TestFileInputLeftEmpty(t *testing.T) {
	t.Parallel()
	const head = "--boundary\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"\"\r\n" +
		"Content-Type: application/octet-stream\r\n\r\n"
	note := string(formBody(file("a.txt", "text")))
	s := onMemory(t, nil)
	u := newUploader(newAlias(t, item.DefaultAlias, s))
	if _, failures := uploadBody(t, u, strings.NewReader(head+"\r\n"+note), Upload{Request: Request{Kind: item.File}}); failures != nil {
		t.Error(failures)
	}
	_, failures := uploadBody(t, u, strings.NewReader(head+"data\r\n"+note), Upload{Request: Request{Kind: item.File}})
	wantFailure(t, failures, item.BadRequest, "", "without a name")
	_, failures = uploadBody(t, u, strings.NewReader(head+"\r\n--boundary--\r\n"), Upload{Request: Request{Kind: item.File}})
	wantFailure(t, failures, item.BadRequest, "", "no file")
	wantContents(t, s, map[string]string{"file/content/a.txt": "text"})
}

// TestSpooledItemsMove: files that do not fit into memory are stored, also before the alias is
// known.
func TestSpooledItemsMove(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 1<<20)
	first, second := onMemory(t, nil), onLocal(t, nil)
	u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
	u.Aliases[item.File]["docs"].MaxSize = math.MaxInt64
	items, failures := uploadForm(t, u, file("long.txt", long), field("alias", "docs"))
	if failures != nil || items[0].Size != int64(len(long)) {
		t.Errorf("stored %v (%v)", items, failures)
	}
	wantContents(t, second, map[string]string{"file/docs/long.txt": long})
}

// TestStagedItemThatCannotBeRead: an error of reading staged data is a fault of the storage.
func TestStagedItemThatCannotBeRead(t *testing.T) {
	t.Parallel()
	first := onLocal(t, func(op, _ string) error {
		if op == "read" {
			return fmt.Errorf("%s: %w", secret, io.ErrUnexpectedEOF)
		}
		return nil
	})
	for name, second := range map[string]*storagedrivers.Storage{"moving": onMemory(t, nil), "checking": first} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
			_, failures := uploadForm(t, u, file("a.txt", "text"), field("alias", "docs"))
			wantFailure(t, failures, item.StorageFailed, "a.txt", "storage")
			wantContents(t, second, nil)
		})
	}
}

func TestBodyErrorsOfTheConnection(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	body := formBody(file("a.txt", "text"))
	for err, message := range map[error]string{
		os.ErrDeadlineExceeded: "stood still",
		io.ErrUnexpectedEOF:    "ends too early",
		io.ErrClosedPipe:       "no valid multipart form",
	} {
		broken := io.MultiReader(bytes.NewReader(body[:len(body)-20]), iotest.ErrReader(err))
		_, failures := uploadBody(t, newUploader(newAlias(t, item.DefaultAlias, s)), broken, Upload{Request: Request{Kind: item.File}})
		wantFailure(t, failures, item.BadRequest, "", message)
	}
	wantContents(t, s, nil)
}
