package mediahttp_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
)

// tusKind is what the requests of TestOpenAPI for resumable uploads of a kind need.
type tusKind struct {
	endpoint string
	ext      string
	content  string // of a good item
	badExt   string // that the content contradicts
	items    string // prefix of the keys of items
	other    string // kind
}

var tusKinds = []tusKind{
	{imagePath + "/resumable", ".gif", gifPicture, ".png", "img/", "file"},
	{filePath + "/resumable", ".txt", "text", ".zip", "file/", "image"},
}

// create creates an upload of the content and returns its address.
func (k tusKind) create(t *testing.T, s *site, filename string) string {
	t.Helper()
	header := fmt.Sprintf("Upload-Length: %d\n%s", len(k.content), metadata("filename", filename))
	return s.TusSend(t, http.MethodPost, k.endpoint, header, "").Want(t, 201, "").Header.Get(location)
}

// complete returns the address of an upload with all bytes, which is not finished because they
// could not be read.
func (k tusKind) complete(t *testing.T, s *site, filename string) string {
	t.Helper()
	address := k.create(t, s, filename)
	s.Failing(fs.ErrPermission, "open", resumable.Folder+"/data/")
	s.TusPatch(t, address, 0, k.content).Want(t, 502, "")
	s.Driver.Fail = nil
	return address
}

// requestHeld requests every response of held uploads.
func requestHeld(t *testing.T) {
	t.Helper()
	for _, k := range tusKinds {
		s := newSite(t, media.Limits{MaxUploads: 1})
		s.Ticket(t, "kind="+k.other)
		path := strings.TrimSuffix(k.endpoint, "/resumable")
		ids := idsIn(t, s.Do(t, http.MethodPost, path+"?hold=600", multipart+bearer, form(file("a"+k.ext, k.content))).Want(t, 202, ""))
		ids = append(ids, idsIn(t, s.Do(t, http.MethodPut, path+"/content/a"+k.ext+"?hold=600", bearer, k.content).Want(t, 202, ""))...)
		held := path + "/held/" + ids[0]
		s.Upload(t, s.Token(t), meanwhile(form(file("a.txt", "text")), func() {
			s.Do(t, http.MethodGet, held+"?content=1", bearer, "").Want(t, 429, "Retry-After: 1")
		})).Want(t, 200, "")
		s.Do(t, http.MethodGet, held+"?content=2", bearer, "").Want(t, 400, "")
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			s.Do(t, method, held, "", "").Want(t, 401, "")
			s.Do(t, method, held, ticketBearer, "").Want(t, 403, "")
			s.Do(t, method, held+"x", bearer, "").Want(t, 404, "")
			for err, status := range map[error]int{fs.ErrPermission: 502, storagedrivers.ErrUnavailable: 503} {
				s.Failing(err, "open", resumable.Folder)
				s.Do(t, method, held, bearer, "").Want(t, status, "")
				s.Driver.Fail = nil
			}
		}
		s.Failing(fs.ErrPermission, "open", resumable.Folder+"/data/"+ids[0][5:6]+"/"+ids[0]+".bytes")
		s.Do(t, http.MethodGet, held+"?content=1", bearer, "").Want(t, 502, "Content-Disposition")
		s.Driver.Fail = nil
		s.Do(t, http.MethodGet, held, bearer, "").Want(t, 200, "")
		claim := fmt.Sprintf("%s/data/%s/%s.kept", resumable.Folder, ids[1][5:6], ids[1])
		s.Put(t, claim, `"another"`)
		s.Do(t, http.MethodDelete, path+"/held/"+ids[1], bearer, "").Want(t, 409, "")
		s.TusSend(t, http.MethodDelete, k.endpoint+"/"+ids[1], "", "").Want(t, 409, "")
		s.Do(t, http.MethodDelete, held, bearer, "").Want(t, 204, "")
	}
}

// requestResumable requests every response of resumable uploads, in parallel.
func requestResumable(t *testing.T) {
	t.Helper()
	for _, k := range tusKinds {
		for name, request := range map[string]func(*testing.T, tusKind){
			"OPTIONS": requestCapabilities, "POST": requestCreations, "PATCH": requestAppends, "DELETE": requestTerminations,
			"HEAD": func(t *testing.T, k tusKind) { t.Helper(); requestStates(t, k, http.MethodHead) },
			"GET":  func(t *testing.T, k tusKind) { t.Helper(); requestStates(t, k, http.MethodGet) },
		} {
			t.Run(k.endpoint+" "+name, func(t *testing.T) {
				t.Parallel()
				request(t, k)
			})
		}
	}
}

func requestCapabilities(t *testing.T, k tusKind) {
	t.Helper()
	for _, path := range []string{k.endpoint, k.endpoint + "/x"} {
		s := aSite(t)
		httpCase{Method: http.MethodOptions, Target: path, Status: 204}.Check(t, s)
		_ = s.First.Close()
		httpCase{Method: http.MethodOptions, Target: path, Status: 503}.Check(t, s)
		httpCase{Method: http.MethodOptions, Target: path, Status: 404}.Check(t, withoutResumable(t))
	}
}

func withoutResumable(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Resumable.Off = true })
}

func requestCreations(t *testing.T, k tusKind) {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Resumable.MaxOpen = 1 })
	s.Ticket(t, "kind="+k.other)
	length := fmt.Sprintf("Upload-Length: %d\n", len(k.content))
	whole := length + tusBody
	named := func(base string) string { return metadata("filename", base+k.ext) }
	post := func(status int, header, body string) *reply {
		t.Helper()
		return s.Exchange(t, s.Request(t, http.MethodPost, k.endpoint, header, body)).Want(t, status, "")
	}
	post(400, tusHeader+named("a"), "")
	post(401, "Tus-Resumable: 1.0.0\n", "")
	post(403, ticketBearer+"Tus-Resumable: 1.0.0\n", "")
	s.TusSend(t, http.MethodPut, k.endpoint, "", "").Want(t, 405, "Allow: OPTIONS, POST")
	part := post(201, tusHeader+"Upload-Concat: partial\nUpload-Length: 0\n", "").Header.Get(location)
	final := tusHeader + "Upload-Concat: final;" + part + "\n" + metadata("filename", "a"+k.badExt)
	post(415, final, "")
	post(410, final, "")
	post(412, bearer, "")
	post(413, tusHeader+named("a")+"Upload-Length: 99999999999\n", "")
	post(460, tusHeader+whole+named("a")+sha1Of("other"), k.content)
	s.Driver.Fail = failByName
	post(502, tusHeader+whole+named("forbidden"), k.content)
	post(503, tusHeader+whole+named("down"), k.content)
	post(507, tusHeader+whole+named("full"), k.content)
	s.Failing(fs.ErrExist, "put", k.items)
	post(409, tusHeader+whole+named("a"), k.content)
	k.create(t, s, "a"+k.ext)
	post(429, tusHeader+length+named("a"), "")
	httpCase{Method: http.MethodPost, Target: k.endpoint, Status: 404}.Check(t, withoutResumable(t))
}

func requestAppends(t *testing.T, k tusKind) {
	t.Helper()
	s := aSite(t)
	s.Ticket(t, "kind="+k.other)
	s.Driver.Fail = failByName
	address, atZero := k.create(t, s, "a"+k.ext), tusBody+"Upload-Offset: 0\n"
	patch := func(address string, status int, header, body string) {
		t.Helper()
		s.Exchange(t, s.Request(t, http.MethodPatch, address, header, body)).Want(t, status, "")
	}
	patch(address, 400, tusHeader+tusBody, "")
	patch(address, 401, atZero+"Tus-Resumable: 1.0.0\n", "")
	patch(address, 403, atZero+ticketBearer+"Tus-Resumable: 1.0.0\n", "")
	patch(address+"x", 404, tusHeader+atZero, "")
	s.TusSend(t, http.MethodPost, address, "", "").Want(t, 405, "Allow: OPTIONS, HEAD, GET, PATCH, DELETE")
	patch(address, 409, tusHeader+tusBody+"Upload-Offset: 1\n", k.content[1:])
	patch(address, 412, bearer+atZero, k.content)
	patch(address, 413, tusHeader+atZero, k.content+"more")
	patch(address, 415, tusHeader+"Upload-Offset: 0\n", k.content)
	patch(address, 460, tusHeader+atZero+sha1Of("other"), k.content)
	patch(address, 204, tusHeader+atZero, k.content)
	address = k.create(t, s, "a"+k.badExt)
	patch(address, 415, tusHeader+atZero, k.content)
	patch(address, 410, tusHeader+atZero, k.content)
	for name, status := range map[string]int{"forbidden": 502, "down": 503, "full": 507} {
		patch(k.create(t, s, name+k.ext), status, tusHeader+atZero, k.content)
	}
}

// requestStates sends HEAD or GET, which finish complete uploads.
func requestStates(t *testing.T, k tusKind, method string) {
	t.Helper()
	s := aSite(t)
	s.Ticket(t, "kind="+k.other)
	send := func(address string, status int, header string) {
		t.Helper()
		s.Exchange(t, s.Request(t, method, address, header, "")).Want(t, status, "")
	}
	good, bad := "a"+k.ext, "a"+k.badExt
	address := k.create(t, s, good)
	send(address, 200, tusHeader)
	send(address, 401, "Tus-Resumable: 1.0.0\n")
	send(address, 403, ticketBearer+"Tus-Resumable: 1.0.0\n")
	send(address+"x", 404, tusHeader)
	if method == http.MethodHead {
		send(address, 412, bearer)
	}
	send(k.complete(t, s, good), 200, tusHeader)
	refused := k.complete(t, s, bad)
	send(refused, 415, tusHeader)
	send(refused, 410, tusHeader)
	for _, c := range []struct {
		err    error
		status int
	}{
		{storagedrivers.ErrInvalidKey, 400},
		{fs.ErrExist, 409},
		{fs.ErrPermission, 502},
		{storagedrivers.ErrUnavailable, 503},
		{storagedrivers.ErrNoSpace, 507},
	} {
		address := k.complete(t, s, good)
		s.Failing(c.err, "put", k.items)
		if method == http.MethodHead && c.status >= 500 {
			c.status = http.StatusLocked
		}
		send(address, c.status, tusHeader)
	}
	s.Driver.Fail = nil
	address = k.complete(t, s, good)
	s.Change = func(c *media.Config) {
		for _, a := range c.ImageAliases {
			a.MaxSize = 1
		}
		for _, a := range c.FileAliases {
			a.MaxSize = 1
		}
	}
	s.First = s.Service(t, media.Limits{}, account())
	s.Current.Store(s.First)
	send(address, 413, tusHeader)
}

func requestTerminations(t *testing.T, k tusKind) {
	t.Helper()
	s := aSite(t)
	s.Ticket(t, "kind="+k.other)
	address := k.create(t, s, "a"+k.ext)
	remove := func(address string, status int, header string) {
		t.Helper()
		s.Exchange(t, s.Request(t, http.MethodDelete, address, header, "")).Want(t, status, "")
	}
	remove(address, 401, "Tus-Resumable: 1.0.0\n")
	remove(address, 403, ticketBearer+"Tus-Resumable: 1.0.0\n")
	remove(address+"x", 404, tusHeader)
	remove(address, 412, bearer)
	for err, status := range map[error]int{fs.ErrPermission: 502, storagedrivers.ErrUnavailable: 503} {
		s.Failing(err, "delete", "")
		remove(address, status, tusHeader)
	}
	s.Driver.Fail = nil
	remove(address, 204, tusHeader)
}
