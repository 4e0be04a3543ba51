package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
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

// TestFieldInOtherCharset: a field that is not UTF-8 is read in the character set that its part
// declares.
func TestFieldInOtherCharset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ contentType, value, want string }{
		{"text/plain; charset=ISO-8859-1", "\xe9t\xe9", "ete/note.txt"},
		{"text/plain; charset=iso-8859-2", "\xb9", "s/note.txt"},
		{"text/plain; charset=Shift_JIS", "\x83\x5c", "so/note.txt"},
		{"text/plain; charset=ISO-8859-1", "été", "ete/note.txt"}, // it is UTF-8 nevertheless
		{"text/plain; charset=unknown", "\xe9", ""},
		{"text/plain; charset=utf-8", "\xe9", ""},
		{"text/plain", "\xe9", ""},
		{"=", "a", "a/note.txt"},
	} {
		body := bytes.Replace(formBody(field("sub_folder", c.value), file("note.txt", "text")),
			[]byte("\r\n\r\n"), []byte("\r\nContent-Type: "+c.contentType+"\r\n\r\n"), 1)
		u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
		items, failures := uploadBody(t, u, bytes.NewReader(body), Upload{Request: Request{Kind: item.File}})
		if c.want == "" && failures == nil || c.want != "" && !slices.Equal(filenames(items), []string{c.want}) {
			t.Errorf("%s %q: stored %v (%v), want %q", c.contentType, c.value, filenames(items), failures, c.want)
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

// TestPartHeaders: parts are refused if two parsers could read their bytes or names differently.
func TestPartHeaders(t *testing.T) {
	t.Parallel()
	const disposition = "Content-Disposition: form-data; name=files; "
	for _, c := range []struct {
		header  string
		reason  item.Reason
		message string // empty: it is stored
	}{
		{disposition + "filename=a.txt", 0, ""},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: Binary", 0, ""},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: quoted-printable", item.BadContent, "without one"},
		{disposition + "filename=a.txt\r\nContent-Transfer-Encoding: base64", item.BadContent, "without one"},
		{disposition + "filename=a.txt; filename*=UTF-8''a.txt", 0, ""},
		{disposition + "filename*=UTF-8''a.txt", 0, ""},
		{disposition + `filename="a filename*.txt"`, 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''b.txt", 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''a.TXT", 0, ""},
		{disposition + "filename=a.txt; filename*=UTF-8''a.pdf", item.BadRequest, "different extensions"},
		{disposition + "filename=a; filename*=UTF-8''a.txt", item.BadRequest, "different extensions"},
		{disposition + "FileName*=UTF-8''b.pdf; FILENAME=a.txt", item.BadRequest, "different extensions"},
		{disposition + `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?UTF-8?Q?=C3=A1.txt?="; filename*=UTF-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?iso-8859-1?q?=E1.txt?="; filename*=UTF-8''%C3%A1.txt`, 0, ""},
		{disposition + `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''b.pdf`, item.BadRequest, "different extensions"},
		{disposition + `filename="=?unknown?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`, item.BadRequest, "different extensions"},
		{disposition + "filename*=UTF-8''a.txt; filename*=UTF-8''a.txt", item.BadRequest, "one filename*"},
		{disposition + "filename*=UTF-8''a.txt; filename*=UTF-8''b.txt", item.BadRequest, "no valid"},
		{disposition + "filename=a.txt; filename*0=b; filename*1=.txt", item.BadRequest, "one filename*"},
		{disposition + "filename*0=b; filename*1=.txt", item.BadRequest, "one filename*"},
		{disposition + "filename=a.txt; filename*=a.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename=a.txt; filename*=UTF-8'a.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename=a.txt; filename*=UTF-8''%zz.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename*=UTF-8''%E1.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename*=koi8-r''%C1.txt", 0, ""},
		{disposition + `filename="=?windows-1252?Q?caf=E9.txt?="; filename*=windows-1252''caf%E9.txt`, 0, ""},
		{disposition + "filename*=x-unknown''%C1.txt", item.BadRequest, "UTF-8''"},
		{disposition + "filename*=iso-2022-kr''a.txt", item.BadRequest, "UTF-8''"},
		{"", item.BadRequest, "no valid"},
		{"Content-Type: text/plain", item.BadRequest, "no valid"},
		{"Content-Disposition: ", item.BadRequest, "no valid"},
		{"Content-Disposition: attachment; name=files; filename=a.txt", item.BadRequest, "no valid"},
		{disposition + "filename=a.txt; filename=b.txt", item.BadRequest, "no valid"},
		{disposition + `filename="a.txt`, item.BadRequest, "no valid"},
		{"no header", item.BadRequest, "no valid"},
		{"Content-Disposition form-data", item.BadRequest, "no valid"},
	} {
		t.Run(c.header, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			body := strings.NewReader(strings.Replace("--x\r\n"+c.header+"\r\n\r\na=3Db\r\n--x--\r\n", "--x\r\n\r\n\r\n", "--x\r\n\r\n", 1))
			items, failures := newUploader(newAlias(t, item.DefaultAlias, s)).Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Form(body, "x"))
			if c.message != "" {
				wantFailure(t, failures, c.reason, "", c.message)
				wantContents(t, s, nil)
				return
			}
			if failures != nil || len(items) != 1 {
				t.Fatalf("%v %v", items, failures)
			}
			wantContents(t, s, map[string]string{"file/content/" + items[0].Filename: "a=3Db"})
		})
	}
}

// TestEscapedNames: the escapes of browsers and curl in a file name are undone, nothing else. An
// extended name has its own encoding, and counts.
func TestEscapedNames(t *testing.T) {
	t.Parallel()
	for parameter, want := range map[string]string{
		`filename="a %22b%22 & c.txt"`:                               `a "b" & c.txt`,
		`filename="a \"b\" & c.txt"`:                                 `a "b" & c.txt`,
		`filename="a%20b%2520%2522.txt"`:                             `a%20b%2520%2522.txt`,
		`filename*=UTF-8''a%2522.txt`:                                `a%22.txt`,
		`filename="a%22.txt"; filename*=UTF-8''a%22.txt`:             `a".txt`,
		`filename="a%0D%0A%22.php"; filename*=UTF-8''a%0D%0A%22.php`: "a\r\n\".php",
		// as Apache HttpClient sends a name beyond ASCII
		`filename="???.jpg"; filename*="UTF-8''%C4%9B%C5%A1%C4%8D.jpg"`: "ěšč.jpg",
		`filename="?.jpg"; filename*=UTF-8''%C4%9B.jpg`:                 "ě.jpg",
		`filename*=utf-8'cs'%C4%9B.jpg; filename=e.JPG`:                 "ě.jpg",
		`filename*=ISO-8859-1''%E1+%20.jpg`:                             "á+ .jpg",
		`filename="; filename*=UTF-8''b.txt"`:                           "; filename*=UTF-8''b.txt",
		`filename="\"; filename*=%22.txt"; x="y"`:                       `"; filename*=".txt`,
		`filename="a%0d%0ab.txt"`:                                       `a%0d%0ab.txt`,
		`filename="a%0D%0Ab.txt"`:                                       "a\r\nb.txt",
	} {
		t.Run(parameter, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReader("--x\r\nContent-Disposition: form-data; name=files; " + parameter + "\r\n\r\nx\r\n--x--\r\n")
			f := newForm(body, "x", newUploader().Limits, 0)
			defer f.close()
			if p, err := f.next(); err != nil || p.filename != want {
				t.Errorf("got %+v, %v, want %q", p, err, want)
			}
		})
	}
}

// TestLikelyAlias: likelyAlias returns only an alias that the account may use.
func TestLikelyAlias(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	u := newUploader(newAlias(t, item.DefaultAlias, s), newAlias(t, "b", s), newAlias(t, "c", s), newAlias(t, "d", s))
	only := func(names string) func(string) bool {
		return func(alias string) bool { return strings.Contains(names, alias) }
	}
	for _, c := range []struct {
		named, allowed, want string
	}{
		{"", "content b", item.DefaultAlias},
		{"d", "content b d", "d"},
		{"", "d c", "c"},
		{"nope", "d c", "c"},
		{"nope", "content d", item.DefaultAlias},
		{"b", "c", "c"},
		{"", "none", ""},
	} {
		b := u.newUpload(Upload{Request: Request{Kind: item.File, Alias: c.named, Allows: only(c.allowed)}})
		got := b.likelyAlias()
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.Name != c.want) {
			t.Errorf("%q of %q: %v", c.named, c.allowed, got)
		}
	}
}

// TestTruncatedBody: nothing is stored of a form whose body ends too early, at whatever byte: at
// its end, by an error of the connection, or at a limit.
func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	body := formBody(
		field("alias", "content"), file("a.txt", "first\r\n--bound"), field("sub_folder", "folder"),
		file("b.txt", ""), send{"files[]", "c.txt", "third\n"},
	)
	for name, c := range map[string]struct {
		cut    func(body []byte, n int) io.Reader
		reason item.Reason
	}{
		"end":   {func(body []byte, n int) io.Reader { return bytes.NewReader(body[:n]) }, item.BadRequest},
		"error": {func(body []byte, n int) io.Reader { return cutBy(body[:n], errors.New(secret)) }, item.BadRequest},
		"limit": {func(body []byte, n int) io.Reader {
			return http.MaxBytesReader(nil, io.NopCloser(bytes.NewReader(body)), int64(n))
		}, item.TooLarge},
	} {
		for _, lines := range []string{"\r\n", "\n"} {
			for kind, open := range storages {
				t.Run(fmt.Sprintf("%s %q %s", name, lines, kind), func(t *testing.T) {
					t.Parallel()
					body := bytes.ReplaceAll(body, []byte("\r\n"), []byte(lines))
					complete := len(body)
					if lines == "\r\n" { // with RFC 2046's line breaks the last one may be missing
						complete -= len(lines)
					}
					s := open(t, nil)
					u := newUploader(newAlias(t, item.DefaultAlias, s))
					for n := range complete {
						_, failures := uploadBody(t, u, c.cut(body, n), Upload{Request: Request{Kind: item.File}})
						if failures == nil {
							t.Fatalf("%d of %d bytes are accepted as a form: %q", n, len(body), body[:n])
						}
						message := ""
						if name == "limit" {
							message = fmt.Sprintf("larger than %d bytes", n)
						}
						wantFailure(t, failures, c.reason, "", message)
					}
					wantContents(t, s, nil)
					if _, failures := uploadBody(t, u, bytes.NewReader(body[:complete]), Upload{Request: Request{Kind: item.File}}); failures != nil {
						t.Errorf("the complete form: %v", failures)
					}
				})
			}
		}
	}
}

// cutBy returns a body that ends by an error.
func cutBy(body []byte, err error) io.Reader {
	return io.MultiReader(bytes.NewReader(body), iotest.ErrReader(err))
}

// TestErrorsOfTheConnection: the failures of the body of a form, and of a body that is the file.
func TestErrorsOfTheConnection(t *testing.T) {
	t.Parallel()
	body := formBody(file("a.txt", "text"))
	for _, c := range []struct {
		err        error
		form, file string
	}{
		{os.ErrDeadlineExceeded, "stood still", "stood still"},
		{io.ErrUnexpectedEOF, "ends too early", "ends too early"},
		{io.ErrClosedPipe, "no valid multipart form", "could not be read to its end"},
	} {
		for message, source := range map[string]Source{
			c.form: Form(cutBy(body[:len(body)-20], c.err), boundary), c.file: Body("a.txt", cutBy([]byte("half"), c.err)),
		} {
			s := onMemory(t, nil)
			items, failures := newUploader(newAlias(t, item.DefaultAlias, s)).Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, source)
			checked(t, items, failures)
			wantFailure(t, failures, item.BadRequest, "", message)
			wantContents(t, s, nil)
		}
	}
}

// TestWholeBody: neither the size of reads nor bytes behind the form make a difference.
func TestWholeBody(t *testing.T) {
	t.Parallel()
	body := string(formBody(file("a.txt", "first"), file("b.txt", strings.Repeat("second", 5000))))
	for name, r := range map[string]io.Reader{
		"one byte":          iotest.OneByteReader(strings.NewReader(body)),
		"half":              iotest.HalfReader(strings.NewReader(body)),
		"end with the data": iotest.DataErrReader(strings.NewReader(body)),
		"preamble":          strings.NewReader("preamble\r\n" + body),
		"epilogue":          strings.NewReader(body + "epilogue\r\n--boundary\r\nwhatever"),
		"no line break":     strings.NewReader(strings.TrimSuffix(body, "\r\n")),
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

// FuzzForm: for any body, all files or none are stored, with bytes of the body only, without a
// panic.
func FuzzForm(f *testing.F) {
	whole := formBody(field("alias", "docs"), file("a.txt", "first"), field("sub_folder", "x/y"), file("b.txt", "second"))
	f.Add(whole, boundary)
	f.Add(whole[:len(whole)/2], boundary)
	f.Add(bytes.ReplaceAll(whole, []byte("\r\n"), []byte("\n")), boundary)
	f.Add([]byte("--\r\n\r\n----"), "")
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=files; filename*=UTF-8''%41.txt\r\n\r\nx\r\n--b--"), "b")
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=files; filename=a.txt\r\n"+
		"Content-Transfer-Encoding: quoted-printable\r\n\r\n=41=\r\n--b--"), "b")
	f.Add([]byte("--"+strings.Repeat("b", 5000)+"\r\n\r\n"), strings.Repeat("b", 5000))
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		first, second := onMemory(t, nil), onMemory(t, nil)
		u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
		u.Limits = Limits{MaxFiles: 5, MaxFields: 5, MaxFieldSize: 100, MaxPartHeader: 1 << 10}
		read := func(body io.Reader) []Item {
			items, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Form(body, boundary))
			checked(t, items, failures)
			return items
		}
		items := read(bytes.NewReader(body))
		stored := 0
		for _, s := range []map[string]string{contents(t, first), contents(t, second)} {
			stored += len(s)
			for key, value := range s {
				if !bytes.Contains(body, []byte(value)) && !bytes.Contains(body, []byte("quoted-printable")) {
					t.Errorf("%s holds %q, which is not in the body", key, value)
				}
			}
		}
		if stored != len(items) {
			t.Errorf("%d items are stored and %d returned", stored, len(items))
		}
		if len(body) < 4<<10 {
			if again := read(iotest.OneByteReader(bytes.NewReader(body))); len(again) != len(items) {
				t.Errorf("%d items of the body byte by byte, %d of it at once", len(again), len(items))
			}
		}
	})
}

// FuzzFormFilename: an accepted header has the name that the standard library finds in it, but for
// the encodings of senders, its folders and other character sets, which the library does not
// decode.
func FuzzFormFilename(f *testing.F) {
	for _, params := range []string{
		`filename="a %22b%22.txt"`, `filename=a.txt; filename*=UTF-8''%C3%A1.txt`, `filename="?.jpg"; filename*="UTF-8''%C4%9B.jpg"`,
		`filename*=iso-8859-1'en'%E1.txt`, `filename*0=a; filename*1=.txt`, `filename="\"; filename*=\\"; x=y`,
		`FILENAME = a.txt ; filename* = utf-8''a.TXT`, `filename="=?utf-8?B?w6EudHh0?="; filename*=utf-8''%C3%A1.txt`,
	} {
		f.Add("form-data; name=files; " + params)
	}
	otherCharset := func(lower string) bool {
		return strings.Contains(lower, "filename*") && !strings.Contains(lower, "utf-8'")
	}
	decoded := func(name string) string { return (&part{filename: name}).baseName() }
	f.Fuzz(func(t *testing.T, header string) {
		got, err := FormFilename(header)
		_, params, parseErr := mime.ParseMediaType(header)
		switch want := params["filename"]; {
		case err != nil && got != "":
			t.Errorf("%q with the error %v", got, err)
		case err == nil && parseErr != nil:
			t.Errorf("a header is accepted: %v", parseErr)
		case err != nil || otherCharset(strings.ToLower(header)):
		case got != decoded(want) && got != decoded(naming.UnescapeForm(want)):
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
