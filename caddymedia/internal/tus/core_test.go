package tus_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestCore checks the sentences of tus 1.0.0, "Core Protocol".
func TestCore(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"Upload-Offset MUST be a non-negative integer", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, value := range []string{"-1", "+1", "1e3", "0x10", "1.0", "", " ", "0 0", "0,0", "٣"} {
				s.send(t, http.MethodPatch, address, tusBody+"Upload-Offset: "+value+"\n", "hello").want(t, 400, "")
			}
			s.send(t, http.MethodPatch, address, tusBody, "hello").want(t, 400, "")
			s.send(t, http.MethodPatch, address, tusBody+"Upload-Offset: 0\nUpload-Offset: 0\n", "hello").want(t, 400, "")
			s.send(t, http.MethodPatch, address, tusBody+"Upload-Offset: 99999999999999999999\n", "hello").want(t, 409, "")
			s.offset(t, address, 0)
		}},
		{"Upload-Length MUST be a non-negative integer", "", func(t *testing.T, s *site) {
			for _, value := range []string{"-1", "+1", "1e3", "0x10", "1.0", "1_0", " ", "5 5", "5\nUpload-Length: 5", "५"} {
				s.send(t, http.MethodPost, resumablePath, aText+"Upload-Length: "+value+"\n", "").want(t, 400, "Location")
			}
		}},
		{"Tus-Resumable MUST be included in every response", "", func(t *testing.T, s *site) {
			s.send(t, http.MethodHead, resumablePath+"/x", "", "").want(t, 404, "Upload-Offset") // send checks it
			s.send(t, http.MethodPut, resumablePath, "", "").want(t, 405, "Allow: OPTIONS, POST")
			s.send(t, http.MethodPost, resumablePath+"/x", "", "").want(t, 405, "Allow: OPTIONS, HEAD, GET, PATCH, DELETE")
			s.roundTrip(t, s.request(t, http.MethodPost, resumablePath, "Tus-Resumable: 1.0.0", "")).want(t, 401, "WWW-Authenticate: Bearer")
		}},
		{"If the version is not supported by the Server, it MUST respond with 412 and MUST include Tus-Version", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, version := range []string{"", "Tus-Resumable: 0.2.2\n", "Tus-Resumable: 1.0.1\n"} {
				for _, method := range []string{http.MethodHead, http.MethodPatch, http.MethodDelete} {
					r := s.request(t, method, address, bearer+version+tusBody+"Upload-Offset: 0\n", "hello")
					s.roundTrip(t, r).want(t, 412, "Tus-Version: 1.0.0")
				}
				r := s.request(t, http.MethodPost, resumablePath, bearer+version+aText+"Upload-Length: 1", "")
				s.roundTrip(t, r).want(t, 412, "Tus-Version: 1.0.0\nLocation")
			}
			s.offset(t, address, 0) // the Server MUST NOT process the request
		}},
		{"X-HTTP-Method-Override MUST be interpreted as the method; the actual method MUST be ignored", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodPut, http.MethodDelete} {
				s.send(t, method, address, "X-HTTP-Method-Override: HEAD\n", "").want(t, 200, "Upload-Offset: 0")
			}
			s.send(t, http.MethodPost, address, "X-HTTP-Method-Override: PATCH\nUpload-Offset: 0\n"+tusBody, "hel").want(t, 204, "Upload-Offset: 3")
			s.send(t, http.MethodDelete, address, "X-HTTP-Method-Override: OPTIONS\n", "").want(t, 204, "Tus-Version: 1.0.0")
			s.send(t, http.MethodPatch, address, "X-HTTP-Method-Override: NONE\n", "").want(t, 405, "")
			s.send(t, http.MethodPost, address, "X-HTTP-Method-Override: DELETE\n", "").want(t, 204, "")
			s.send(t, http.MethodHead, address, "", "").want(t, 404, "")
			address = s.create(t, 1, metadata("filename", "a.zip"))
			s.patch(t, address, 0, "x", "").want(t, 415, "")
			s.send(t, http.MethodDelete, address, "X-HTTP-Method-Override: HEAD\n", "").want(t, 410, "")
			s.send(t, http.MethodPost, address, "X-HTTP-Method-Override: DELETE\n", "").want(t, 204, "")
		}},
		{"HEAD MUST always include Upload-Offset, even if it is 0 or the upload is completed, and Upload-Length if it is known", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.offset(t, address, 0).want(t, 200, "Upload-Length: 5\nUpload-Defer-Length\nCache-Control: no-store")
			s.patch(t, address, 0, "hello", "").want(t, 204, "")
			s.offset(t, address, 5).want(t, 200, "Upload-Length: 5\nCache-Control: no-store")
		}},
		{"If the resource is not found, the Server SHOULD return 404 without Upload-Offset", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, id := range []string{
				"x", strings.ToUpper(address[len(address)-43:]), address[len(address)-42:], "a/b", "..", "../" + address[len(address)-43:],
				"%2e%2e", "%00", address[len(address)-43:] + "%2f", address[len(address)-43:] + ".", "/", strings.Repeat("a", 9999),
			} {
				s.send(t, http.MethodHead, resumablePath+"/"+id, "", "").want(t, 404, "Upload-Offset\nUpload-Length")
				s.send(t, http.MethodPatch, resumablePath+"/"+id, tusBody+"Upload-Offset: 0\n", "x").want(t, 404, "Upload-Offset")
			}
		}},
		{"PATCH MUST use application/offset+octet-stream, otherwise the server SHOULD return 415", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for _, header := range []string{"", "Content-Type: \n", "Content-Type: application/octet-stream\n", "Content-Type: application/offset+octet-stream2\n"} {
				s.send(t, http.MethodPatch, address, header+"Upload-Offset: 0\n", "hello").want(t, 415, "")
			}
			s.send(t, http.MethodPatch, address, tusBody+"Content-Encoding: gzip\nUpload-Offset: 0\n", "hello").want(t, 415, "")
			s.offset(t, address, 0)
			s.send(t, http.MethodPatch, address, "Content-Type: Application/Offset+Octet-Stream; x=y\nUpload-Offset: 0\n", "hello").want(t, 204, "")
		}},
		{"If the offsets do not match, the Server MUST respond with 409 without modifying the upload", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 1, "ello", "").want(t, 409, "")
			s.patch(t, address, 0, "he", "").want(t, 204, "Upload-Offset: 2")
			for _, offset := range []int{0, 1, 3, 5, 6} {
				s.patch(t, address, offset, "x", "").want(t, 409, "")
			}
			s.offset(t, address, 2)
			s.patch(t, address, 2, "llo", "").want(t, 204, "Upload-Offset: 5")
			s.patch(t, address, 2, "llo", "").want(t, 409, "")
			s.itemIs(t, "hello")
		}},
		{"The Server MUST acknowledge PATCH with 204 and the sum of the offset and the bytes", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			for i, piece := range strings.Split("hello", "") {
				s.patch(t, address, i, "", "").want(t, 204, "")
				s.patch(t, address, i, piece, "").want(t, 204, "Upload-Offset: "+string(rune('1'+i))+"\nUpload-Length")
			}
			s.itemIs(t, "hello")
		}},
		{"The Server SHOULD accept PATCH against any upload: no bytes behind the last one", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 0, "hello", "").want(t, 204, "")
			s.patch(t, address, 5, "", "").want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
			s.patch(t, address, 5, "x", "").want(t, 413, "")
			for body, status := range map[string]int{"": 204, "x": 413} { // of unknown length
				r := s.request(t, http.MethodPatch, address, tusHeader+tusBody+"Upload-Offset: 5\n", body)
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
				s.roundTrip(t, r).want(t, status, "")
			}
		}},
		{"A successful response to OPTIONS MUST contain Tus-Version; the Server MUST ignore Tus-Resumable", "", func(t *testing.T, s *site) {
			for _, header := range []string{"", "Tus-Resumable: 0.1\n", "Authorization: Bearer x\n"} {
				for _, path := range []string{resumablePath, resumablePath + "/", resumablePath + "/x"} {
					s.roundTrip(t, s.request(t, http.MethodOptions, path, header, "")).want(t, 204, "Tus-Version: 1.0.0\nTus-Max-Size: 2147483648\n"+
						"Tus-Extension: creation,creation-with-upload,creation-defer-length,expiration,checksum,termination,concatenation\n"+
						"Tus-Checksum-Algorithm: sha1,sha256\n")
				}
			}
			s.roundTrip(t, s.request(t, http.MethodOptions, "/api/upload/image/resumable", "", "")).want(t, 204, "Tus-Max-Size: 33554432")
		}},
	})
}
