package tus_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCore checks the sentences of tus 1.0.0, "Core Protocol".
func TestCore(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"Upload-Offset MUST be a non-negative integer", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, value := range []string{"-1", "+1", "1e3", "0x10", "1.0", "", " ", "0 0", "0,0", "٣"} {
				s.send(t, http.MethodPatch, address, tusBody+"Upload-Offset: "+value+"\n", "hello").Want(t, 400, "")
			}
			s.send(t, http.MethodPatch, address, tusBody, "hello").Want(t, 400, "")
			s.send(t, http.MethodPatch, address, tusBody+"Upload-Offset: 0\nUpload-Offset: 0\n", "hello").Want(t, 400, "")
			s.send(t, http.MethodPatch, address, tusBody+"Upload-Offset: 99999999999999999999\n", "hello").Want(t, 409, "")
			s.offset(t, address, 0)
		}},
		{"Upload-Length MUST be a non-negative integer", "", func(t *testing.T, s *site) {
			for _, value := range []string{"-1", "+1", "1e3", "0x10", "1.0", "1_0", " ", "5 5", "5\nUpload-Length: 5", "५"} {
				s.send(t, http.MethodPost, resumablePath, aText+"Upload-Length: "+value+"\n", "").Want(t, 400, "Location")
			}
		}},
		{"Tus-Resumable MUST be included in every response", "", func(t *testing.T, s *site) {
			s.send(t, http.MethodHead, resumablePath+"/x", "", "").Want(t, 404, "Upload-Offset") // send checks it
			s.send(t, http.MethodPut, resumablePath, "", "").Want(t, 405, "Allow: OPTIONS, POST")
			s.send(t, http.MethodPost, resumablePath+"/x", "", "").Want(t, 405, "Allow: OPTIONS, HEAD, GET, PATCH, DELETE")
			s.roundTrip(t, s.Request(t, http.MethodPost, resumablePath, "Tus-Resumable: 1.0.0", "")).Want(t, 401, "WWW-Authenticate: Bearer")
		}},
		{"If the version is not supported by the Server, it MUST respond with 412 and MUST include Tus-Version", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, version := range []string{"", "Tus-Resumable: 0.2.2\n", "Tus-Resumable: 1.0.1\n"} {
				for _, method := range []string{http.MethodHead, http.MethodPatch, http.MethodDelete} {
					r := s.Request(t, method, address, bearer+version+tusBody+"Upload-Offset: 0\n", "hello")
					s.roundTrip(t, r).Want(t, 412, "Tus-Version: 1.0.0")
				}
				r := s.Request(t, http.MethodPost, resumablePath, bearer+version+aText+"Upload-Length: 1", "")
				s.roundTrip(t, r).Want(t, 412, "Tus-Version: 1.0.0\nLocation")
			}
			s.offset(t, address, 0) // the Server MUST NOT process the request
		}},
		{"X-HTTP-Method-Override MUST be interpreted as the method; the actual method MUST be ignored", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete} {
				s.send(t, method, address, "X-HTTP-Method-Override: HEAD\n", "").Want(t, 200, "Upload-Offset: 0")
			}
			s.send(t, http.MethodPost, address, "X-HTTP-Method-Override: PATCH\nUpload-Offset: 0\n"+tusBody, "hel").Want(t, 204, "Upload-Offset: 3")
			s.send(t, http.MethodDelete, address, "X-HTTP-Method-Override: OPTIONS\n", "").Want(t, 204, "Tus-Version: 1.0.0")
			s.send(t, http.MethodPatch, address, "X-HTTP-Method-Override: NONE\n", "").Want(t, 405, "")
			s.send(t, http.MethodPost, address, "X-HTTP-Method-Override: DELETE\n", "").Want(t, 204, "")
			s.send(t, http.MethodHead, address, "", "").Want(t, 404, "")
			address = s.create(t, 1, metadata("filename", "a.zip"))
			s.patch(t, address, 0, "x", "").Want(t, 415, "")
			s.send(t, http.MethodDelete, address, "X-HTTP-Method-Override: HEAD\n", "").Want(t, 410, "")
			s.send(t, http.MethodPost, address, "X-HTTP-Method-Override: DELETE\n", "").Want(t, 204, "")
		}},
		{"HEAD MUST always include Upload-Offset, even if it is 0 or the upload is completed, and Upload-Length if it is known", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.offset(t, address, 0).Want(t, 200, "Upload-Length: 5\nUpload-Defer-Length\nCache-Control: no-store")
			s.send(t, http.MethodGet, address, "", "").Want(t, 200, "Upload-Offset: 0\nUpload-Length: 5") // HEAD of a proxy that caches
			s.patch(t, address, 0, "hello", "").Want(t, 204, "")
			s.offset(t, address, 5).Want(t, 200, "Upload-Length: 5\nCache-Control: no-store")
			s.send(t, http.MethodGet, address, "", "").Want(t, 200, "Upload-Offset: 5\nUpload-Length: 5\nMedia-Filename: a.txt")
		}},
		{"If the resource is not found, the Server SHOULD return 404 without Upload-Offset", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, id := range []string{
				"x", strings.ToUpper(address[len(address)-43:]), address[len(address)-42:], "a/b", "%00", address[len(address)-43:] + "%2f", address[len(address)-43:] + ".", "/", strings.Repeat("a", 9999),
			} {
				s.send(t, http.MethodHead, resumablePath+"/"+id, "", "").Want(t, 404, "Upload-Offset\nUpload-Length")
				s.send(t, http.MethodPatch, resumablePath+"/"+id, tusBody+"Upload-Offset: 0\n", "x").Want(t, 404, "Upload-Offset")
			}
		}},
		{"PATCH MUST use application/offset+octet-stream, otherwise the server SHOULD return 415", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, header := range []string{"", "Content-Type: \n", "Content-Type: application/octet-stream\n", "Content-Type: application/offset+octet-stream2\n"} {
				s.send(t, http.MethodPatch, address, header+"Upload-Offset: 0\n", "hello").Want(t, 415, "")
			}
			s.send(t, http.MethodPatch, address, tusBody+"Content-Encoding: gzip\nUpload-Offset: 0\n", "hello").Want(t, 415, "")
			s.offset(t, address, 0)
			s.send(t, http.MethodPatch, address, "Content-Type: Application/Offset+Octet-Stream; x=y\nUpload-Offset: 0\n", "hello").Want(t, 204, "")
		}},
		{"If the offsets do not match, the Server MUST respond with 409 without modifying the upload", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 1, "ello", "").Want(t, 409, "")
			s.patch(t, address, 0, "he", "").Want(t, 204, "Upload-Offset: 2")
			for _, offset := range []int{0, 1, 3, 5, 6} {
				s.patch(t, address, offset, "x", "").Want(t, 409, "")
			}
			s.offset(t, address, 2)
			s.patch(t, address, 2, "llo", "").Want(t, 204, "Upload-Offset: 5")
			s.patch(t, address, 2, "llo", "").Want(t, 409, "")
			s.itemIs(t, "hello")
		}},
		{"The Server MUST acknowledge PATCH with 204 and the sum of the offset and the bytes", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for i, piece := range strings.Split("hello", "") {
				s.patch(t, address, i, "", "").Want(t, 204, "")
				s.patch(t, address, i, piece, "").Want(t, 204, "Upload-Offset: "+string(rune('1'+i))+"\nUpload-Length")
			}
			s.itemIs(t, "hello")
		}},
		{"The Server SHOULD accept PATCH against any upload: no bytes behind the last one", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 0, "hello", "").Want(t, 204, "")
			s.patch(t, address, 5, "", "").Want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
			s.patch(t, address, 5, "x", "").Want(t, 413, "")
			for body, status := range map[string]int{"": 204, "x": 413} { // of unknown length
				r := s.Request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 5\n", body)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
				s.roundTrip(t, r).Want(t, status, "")
			}
		}},
		{"A successful response to OPTIONS MUST contain Tus-Version; the Server MUST ignore Tus-Resumable", "", func(t *testing.T, s *site) {
			for _, header := range []string{"", "Tus-Resumable: 0.1\n", "Authorization: Bearer x\n"} {
				for _, path := range []string{resumablePath, resumablePath + "/", resumablePath + "/x"} {
					s.roundTrip(t, s.Request(t, http.MethodOptions, path, header, "")).Want(t, 204, "Tus-Version: 1.0.0\nTus-Max-Size: 2147483648\n"+
						"Tus-Extension: creation,creation-with-upload,creation-defer-length,expiration,checksum,termination,concatenation\n"+
						"Tus-Checksum-Algorithm: sha1,sha256\n")
				}
			}
			s.roundTrip(t, s.Request(t, http.MethodOptions, "/api/upload/image/resumable", "", "")).Want(t, 204, "Tus-Max-Size: 33554432")
		}},
	})
}

// TestCreation checks the sentences of tus 1.0.0 about the extensions of creation.
func TestCreation(t *testing.T) {
	t.Parallel()
	create := func(t *testing.T, s *site, header, body string) *reply {
		t.Helper()
		return s.send(t, http.MethodPost, resumablePath, header, body)
	}
	runRules(t, []rule{
		{"The Server MUST acknowledge a creation with 201 and set Location", "", func(t *testing.T, s *site) {
			got := create(t, s, "Upload-Length: 100\n"+aText, "").Want(t, 201, "")
			if !strings.HasPrefix(got.Header.Get(location), resumablePath+"/") || got.Header.Get("Upload-Expires") == "" || got.Body != "" {
				t.Errorf("%+v", got)
			}
		}},
		{"The request MUST include Upload-Length or Upload-Defer-Length", "", func(t *testing.T, s *site) {
			create(t, s, aText, "").Want(t, 400, location)
			create(t, s, aText+"Upload-Length: 1\nUpload-Defer-Length: 1\n", "").Want(t, 400, location)
		}},
		{"If Upload-Defer-Length contains any other value than 1 the server should return 400", "", func(t *testing.T, s *site) {
			for _, value := range []string{"0", "2", "true", "1\nUpload-Defer-Length: 1"} {
				create(t, s, aText+"Upload-Defer-Length: "+value+"\n", "").Want(t, 400, location)
			}
		}},
		{"As long as the length is not known, the Server MUST set Upload-Defer-Length: 1; once set it MUST NOT be changed", "", func(t *testing.T, s *site) {
			address := create(t, s, aText+"Upload-Defer-Length: 1\n", "").Want(t, 201, "").Header.Get(location)
			s.offset(t, address, 0).Want(t, 200, "Upload-Defer-Length: 1\nUpload-Length")
			s.patch(t, address, 0, "he", "").Want(t, 204, "")
			s.offset(t, address, 2).Want(t, 200, "Upload-Defer-Length: 1\nUpload-Length")
			s.patch(t, address, 2, "l", "Upload-Length: 1\n").Want(t, 400, "")
			s.patch(t, address, 2, "l", "Upload-Length: 3000000000\n").Want(t, 413, "")
			s.patch(t, address, 2, "l", "Upload-Length: -5\n").Want(t, 400, "")
			s.offset(t, address, 2).Want(t, 200, "Upload-Defer-Length: 1\nUpload-Length")
			s.patch(t, address, 2, "l", "Upload-Length: 5\n").Want(t, 204, "Upload-Offset: 3")
			s.offset(t, address, 3).Want(t, 200, "Upload-Defer-Length\nUpload-Length: 5")
			s.patch(t, address, 3, "lo", "Upload-Length: 6\n").Want(t, 400, "")
			s.patch(t, address, 3, "lo", "Upload-Length: 5\n").Want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
			s.itemIs(t, "hello")
		}},
		{"The Client MUST set the length in the next PATCH, once it is known: also without bytes", "", func(t *testing.T, s *site) {
			address := create(t, s, aText+"Upload-Defer-Length: 1\n"+tusBody, "hello").Want(t, 201, "Upload-Offset: 5\nMedia-Filename").Header.Get(location)
			s.patch(t, address, 5, "", "Upload-Length: 5\n").Want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
		}},
		{"Upload-Length MAY be 0: such an upload is immediately complete", "", func(t *testing.T, s *site) {
			got := create(t, s, aText+"Upload-Length: 0\n", "").Want(t, 201, "Media-Filename: a.txt\nMedia-Full-Path: "+origin+"/static/file/content/a.txt")
			s.offset(t, got.Header.Get(location), 0).Want(t, 200, "Upload-Length: 0\nMedia-Filename: a.txt")
			s.itemIs(t, "")
		}},
		{"HEAD MUST include Upload-Metadata and its value as specified by the Client", "", func(t *testing.T, s *site) {
			value := "filename YS50eHQ=,is_confidential, more  ,Other YQ=="
			address := s.create(t, 1, "Upload-Metadata: "+strings.Replace(value, "more  ", "more ", 1)+"\n")
			want := "Upload-Metadata: " + strings.Replace(value, "more  ", "more ", 1)
			s.offset(t, address, 0).Want(t, 200, want)
			s.patch(t, address, 0, "x", "").Want(t, 204, "")
			s.offset(t, address, 1).Want(t, 200, want)
		}},
		{"Upload-Metadata MUST consist of pairs; keys MUST NOT be empty, all keys MUST be unique, values MUST be Base64", "", func(t *testing.T, s *site) {
			for _, value := range []string{
				"filename a.txt", "filename YS50eHQ", "filename  YS50eHQ=", "filename YS50eHQ=,", ",filename YS50eHQ=", "filename YS50eHQ=,, a YQ==",
				"filename YS50eHQ=,filename YS50eHQ=", "filename YS50eHQ=,a,a", "filename YS50eHQ= YQ==", "filename\tYS50eHQ=", "filename=YS50eHQ=",
				"filename YS50eHQ=\nUpload-Metadata: filename YQ==", "filename YS50eHQ_", "filename YS50eHQ=,\xff YQ==", "filename YS50eHQ=,a\x01 YQ==", "",
				"name", "filename ,name ", "filename YS50eHQ=,x " + strings.Repeat("A", 8<<10),
			} {
				create(t, s, "Upload-Length: 1\nUpload-Metadata: "+value+"\n", "").Want(t, 400, location)
			}
			create(t, s, "Upload-Length: 1\n", "").Want(t, 400, location)
		}},
		{"Upload-Metadata in several headers is one; a name is decoded as senders encode it, and of a path the last segment counts", "", func(t *testing.T, s *site) {
			for name, want := range map[string]string{
				"\xe9.txt": "e.txt", "=?utf-8?B?xJtzLnR4dA==?=": "es.txt", `C:\Users\Eva\photo.txt`: "photo.txt", "../a/b.txt": "b.txt",
			} {
				more := "Upload-Metadata: more YQ==\n"
				address := s.create(t, 1, more+metadata("filename", name))
				s.offset(t, address, 0).Want(t, 200, "Upload-Metadata: more YQ==,"+strings.TrimSpace(strings.TrimPrefix(metadata("filename", name), "Upload-Metadata: ")))
				s.patch(t, address, 0, "x", "").Want(t, 204, "Media-Filename: "+want)
			}
		}},
		{"If the length exceeds the maximum the Server MUST respond with 413", "", func(t *testing.T, s *site) {
			for _, length := range []string{"2147483649", "9223372036854775807", "9223372036854775808", "99999999999999999999999"} {
				create(t, s, aText+"Upload-Length: "+length+"\n", "").Want(t, 413, location)
				create(t, s, "Upload-Concat: partial\nUpload-Length: "+length+"\n", "").Want(t, 413, location)
			}
			create(t, s, metadata("filename", "a.txt", "alias", "small")+"Upload-Length: 11\n", "").Want(t, 413, location)
		}},
		{"creation-with-upload: the Server MUST include Upload-Offset after applying the accepted bytes", "", func(t *testing.T, s *site) {
			got := create(t, s, aText+tusBody+"Upload-Length: 11\n", "hello ").Want(t, 201, "Upload-Offset: 6\nMedia-Filename")
			address := got.Header.Get(location)
			s.offset(t, address, 6)
			s.patch(t, address, 6, "world", "").Want(t, 204, "Media-Filename: a.txt")
			s.itemIs(t, "hello world")
			create(t, s, metadata("filename", "b.txt")+tusBody+"Upload-Length: 1\n", "b").Want(t, 201, "Upload-Offset: 1\nMedia-Filename: b.txt")
		}},
		{"creation-with-upload: the Client MUST include the Content-Type", "", func(t *testing.T, s *site) {
			create(t, s, aText+"Upload-Length: 11\n", "hello ").Want(t, 415, location)
		}},
		{"creation-with-upload: a creation that fails with its bytes leaves nothing", "", func(t *testing.T, s *site) {
			create(t, s, aText+tusBody+"Upload-Length: 3\n", "hello").Want(t, 413, location)
			create(t, s, aText+tusBody+"Upload-Length: 5\n"+sha1Of("other"), "hello").Want(t, 460, location)
			create(t, s, aText+tusBody+"Upload-Length: 5\nUpload-Checksum: md5 AAAA\n", "hello").Want(t, 400, location)
			create(t, s, aText+tusBody+"Upload-Length: 5\nContent-Encoding: gzip\n", "hello").Want(t, 415, location)
			if left := s.Objects(t); len(left) != 0 {
				t.Errorf("%d objects are left", len(left))
			}
		}},
		{"expiration: Upload-Expires MUST be included in every PATCH and POST response, in the datetime format", "", func(t *testing.T, s *site) {
			got := create(t, s, aText+"Upload-Length: 2\n", "")
			address := got.Header.Get(location)
			for i, got := range []*reply{got, s.patch(t, address, 0, "a", ""), s.offset(t, address, 1), s.patch(t, address, 1, "b", "")} {
				if at, err := time.Parse(http.TimeFormat, got.Header.Get("Upload-Expires")); err != nil || at.Before(noon.Add(23*time.Hour)) {
					t.Errorf("%d: Upload-Expires %q", i, got.Header.Get("Upload-Expires"))
				}
			}
		}},
		{"expiration: PATCH against an expired upload SHOULD be 404", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 0, "he", "").Want(t, 204, "")
			s.Passed.Store(int64(200 * 365 * 24 * time.Hour)) // behind the times of the objects, whatever the clock
			s.patch(t, address, 2, "llo", "").Want(t, 404, "Upload-Offset")
			s.send(t, http.MethodHead, address, "", "").Want(t, 404, "Upload-Offset")
			s.send(t, http.MethodDelete, address, "", "").Want(t, 404, "")
		}},
	})
}

// TestConcatenation checks the sentences of tus 1.0.0, "Concatenation".
func TestConcatenation(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"The partial uploads MUST be concatenated as per the order specified in the list", "", func(t *testing.T, s *site) {
			a, b := s.part(t, "hello"), s.part(t, " world")
			got := s.final(t, aText, a, b).Want(t, 201, "Media-Filename: a.txt")
			s.itemIs(t, "hello world")
			s.offset(t, got.Header.Get(location), 11).Want(t, 200, "Upload-Length: 11\nMedia-Filename: a.txt")
		}},
		{"HEAD MUST include Upload-Concat as received; for a partial upload also Upload-Offset and Upload-Length", "", func(t *testing.T, s *site) {
			a := s.create(t, 2, "Upload-Concat: partial\n")
			s.offset(t, a, 0).Want(t, 200, "Upload-Concat: partial\nUpload-Length: 2")
			s.patch(t, a, 0, "ab", "").Want(t, 204, "Media-Filename")
			s.offset(t, a, 2).Want(t, 200, "Upload-Concat: partial\nUpload-Length: 2\nMedia-Filename")
			list := "final;" + a + " " + origin + a
			got := s.final(t, aText, a, origin+a).Want(t, 201, "")
			s.offset(t, got.Header.Get(location), 4).Want(t, 200, "Upload-Concat: "+list)
			s.itemIs(t, "abab")
		}},
		{"The same partial upload MAY be present multiple times", "", func(t *testing.T, s *site) {
			a, b := s.part(t, "a"), s.part(t, "b")
			s.final(t, aText, a, b, a, a).Want(t, 201, "")
			s.itemIs(t, "abaa")
		}},
		{"300 parts", "", func(t *testing.T, s *site) {
			a, list := s.part(t, "a"), ""
			for range 299 {
				list += " https://media.example.com/some/prefix" + a
			}
			list += " " + s.part(t, strings.Repeat("b", 299))
			s.final(t, aText, list+" "+a).Want(t, 400, location)
			got := s.final(t, aText, list[1:]).Want(t, 201, "Media-Filename: a.txt")
			s.offset(t, got.Header.Get(location), 598)
			s.itemIs(t, strings.Repeat("a", 299)+strings.Repeat("b", 299))
		}},
		{"a part that is repeated too often", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			s.final(t, aText, a, a, a).Want(t, 400, location)
			s.final(t, aText, a, a).Want(t, 201, "Media-Filename: a.txt")
		}},
		{"URLs MAY be absolute or relative", "", func(t *testing.T, s *site) {
			a, b, c := s.part(t, "a"), s.part(t, "b"), s.part(t, "c")
			s.final(t, aText, origin+a, b, strings.TrimPrefix(c, resumablePath+"/")).Want(t, 201, "")
			s.itemIs(t, "abc")
		}},
		{"The Client MUST NOT include Upload-Length in the final upload creation", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			s.final(t, aText+"Upload-Length: 1\n", a).Want(t, 400, location)
			s.final(t, aText+"Upload-Defer-Length: 1\n", a).Want(t, 400, location)
			s.send(t, http.MethodPost, resumablePath, "Upload-Concat: final;"+a+"\n"+aText+tusBody, "x").Want(t, 400, location)
			s.final(t, aText, a).Want(t, 201, "")
		}},
		{"concatenation-unfinished is not announced: all parts must be complete", "", func(t *testing.T, s *site) {
			a, whole := s.create(t, 2, "Upload-Concat: partial\n"), s.create(t, 1, aText)
			deferred := s.send(t, http.MethodPost, resumablePath, "Upload-Concat: partial\nUpload-Defer-Length: 1\n", "").Header.Get(location)
			image := s.send(t, http.MethodPost, imagesPath, "Upload-Concat: partial\nUpload-Length: 0\n", "").Header.Get(location)
			for _, part := range []string{a, whole, deferred, image, "x", "", ";", "/", "%", a + "/..", a + "?", "http://[", a + "\xff", a + "\x01"} {
				s.final(t, aText, part).Want(t, 400, location)
			}
			s.patch(t, a, 0, "a", "").Want(t, 204, "")
			s.final(t, aText, a).Want(t, 400, location)
			s.patch(t, a, 1, "b", "").Want(t, 204, "")
			s.final(t, aText, a).Want(t, 201, "Media-Filename: a.txt")
		}},
		{"Upload-Concat MUST be partial or final", "", func(t *testing.T, s *site) {
			for _, value := range []string{"Partial", "partial;", "final", "final;", "final; ", "x", "partial\nUpload-Concat: partial"} {
				s.send(t, http.MethodPost, resumablePath, aText+"Upload-Length: 1\nUpload-Concat: "+value+"\n", "").Want(t, 400, location)
			}
		}},
		{"The partial uploads' metadata SHALL NOT be transferred to the final upload", "", func(t *testing.T, s *site) {
			a := s.create(t, 0, "Upload-Concat: partial\n"+aText)
			s.final(t, "", a).Want(t, 400, location)
			got := s.final(t, metadata("filename", "b.txt"), a).Want(t, 201, "Media-Filename: b.txt")
			s.offset(t, got.Header.Get(location), 0).Want(t, 200, metadata("filename", "b.txt"))
		}},
		{"The Server MUST respond with 403 to PATCH against a final upload", "", func(t *testing.T, s *site) {
			address := s.final(t, aText, s.part(t, "a")).Header.Get(location)
			s.patch(t, address, 1, "b", "").Want(t, 403, "")
			s.patch(t, address, 1, "", "").Want(t, 403, "")
			s.offset(t, address, 1)
			s.itemIs(t, "a")
		}},
		{"A repeated final POST is the same upload, however its parts are written", "", func(t *testing.T, s *site) {
			a, b := s.part(t, "a"), s.part(t, "b")
			first := s.final(t, aText, a, b).Want(t, 201, "")
			again := s.final(t, aText, origin+a, b).Want(t, 201, "Media-Filename: a.txt\nUpload-Offset: 2")
			if first.Header.Get(location) != again.Header.Get(location) || len(s.items(t)) != 1 {
				t.Errorf("%q, then %q, and the items %v", first.Header, again.Header, s.items(t))
			}
			for _, part := range []string{a, b} { // a client may ask for them before it repeats the POST
				s.offset(t, part, 1).Want(t, 200, "Upload-Length: 1\nUpload-Concat: partial")
			}
			s.final(t, metadata("filename", "b.txt"), a, b).Want(t, 400, location) // the parts were removed
		}},
		{"A repeated final POST of a refused item is refused again", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			got := s.final(t, metadata("filename", "a.zip"), a).Want(t, 415, "Media-Filename")
			got.Refused(t, 415, "", "a.zip")
			s.final(t, metadata("filename", "a.zip"), a).Want(t, 410, "Media-Filename")
		}},
		{"A final upload is not larger than the alias allows", "", func(t *testing.T, s *site) {
			a := s.part(t, "6 byte")
			s.final(t, metadata("filename", "a.txt", "alias", "small"), a, a).Want(t, 413, location)
			s.final(t, metadata("filename", "a.txt", "alias", "small"), a).Want(t, 201, "")
		}},
	})
}

// TestChecksum checks the sentences of tus 1.0.0, "Checksum" and "Termination".
func TestChecksum(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"the Server MUST verify the chunk against the checksum", "", func(t *testing.T, s *site) {
			address := s.create(t, 11, aText)
			s.patch(t, address, 0, "hello ", sha1Of("hello ")).Want(t, 204, "Upload-Offset: 6")
			sum := sha256.Sum256([]byte("world"))
			s.patch(t, address, 6, "world", "Upload-Checksum: sha256 "+base64.StdEncoding.EncodeToString(sum[:])+"\n").Want(t, 204, "Media-Filename: a.txt")
			s.itemIs(t, "hello world")
		}},
		{"460 if the checksums mismatch; the chunk MUST be discarded, and the upload and its offset MUST NOT be updated", "", func(t *testing.T, s *site) {
			address := s.send(t, http.MethodPost, resumablePath, aText+"Upload-Defer-Length: 1\n", "").Header.Get(location)
			s.patch(t, address, 0, "hello", sha1Of("hellp")).Want(t, 460, "Upload-Offset")
			s.patch(t, address, 0, "hello", "Upload-Length: 5\n"+sha1Of("hellp")).Want(t, 460, "Upload-Offset")
			s.patch(t, address, 0, "", sha1Of("x")).Want(t, 460, "Upload-Offset")
			s.offset(t, address, 0).Want(t, 200, "Upload-Length\nUpload-Defer-Length: 1")
			s.patch(t, address, 0, "hello", "Upload-Length: 3\n"+sha1Of("hello")).Want(t, 413, "Upload-Offset")
			s.offset(t, address, 0)
			s.patch(t, address, 0, "hello", "Upload-Length: 5\n"+sha1Of("hello")).Want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
		}},
		{"400 if the algorithm is not supported; the chunk MUST be discarded", "", func(t *testing.T, s *site) {
			address := s.send(t, http.MethodPost, resumablePath, aText+"Upload-Defer-Length: 1\n", "").Header.Get(location)
			for _, value := range []string{
				"md5 AAAA", "SHA1 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1", "sha1 ", "sha1 AAAA", "sha1 *", "sha1  qvTGHdzF6KLavt4PO0gs2a6pQ00=",
				"sha256 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=\nUpload-Checksum: sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=",
			} {
				s.patch(t, address, 0, "hello", "Upload-Length: 5\nUpload-Checksum: "+value+"\n").Want(t, 400, "Upload-Offset")
			}
			s.offset(t, address, 0).Want(t, 200, "Upload-Length")
		}},
		{"DELETE MUST be 204; all future requests SHOULD be 404", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 0, "he", "").Want(t, 204, "")
			s.send(t, http.MethodDelete, address, "", "").Want(t, 204, "")
			for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete} {
				s.send(t, method, address, tusBody+"Upload-Offset: 2\n", "").Want(t, 404, "Upload-Offset")
			}
			if left := s.Objects(t); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		}},
		{"a part that is removed makes its final upload impossible", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			s.send(t, http.MethodDelete, a, "", "").Want(t, 204, "")
			s.final(t, aText, a).Want(t, 400, location)
		}},
	})
}
