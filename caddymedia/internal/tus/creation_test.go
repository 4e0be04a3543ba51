package tus_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestCreation checks the sentences of tus 1.0.0 about the extensions of creation.
func TestCreation(t *testing.T) {
	t.Parallel()
	create := func(t *testing.T, s *site, header, body string) *reply {
		t.Helper()
		return s.send(t, http.MethodPost, resumablePath, header, body)
	}
	runRules(t, []rule{
		{"The Server MUST acknowledge a creation with 201 and set Location", "", func(t *testing.T, s *site) {
			got := create(t, s, "Upload-Length: 100\n"+aText, "").want(t, 201, "")
			if !strings.HasPrefix(got.header.Get(location), resumablePath+"/") || got.header.Get("Upload-Expires") == "" || got.body != "" {
				t.Errorf("%+v", got)
			}
		}},
		{"The request MUST include Upload-Length or Upload-Defer-Length", "", func(t *testing.T, s *site) {
			create(t, s, aText, "").want(t, 400, location)
			create(t, s, aText+"Upload-Length: 1\nUpload-Defer-Length: 1\n", "").want(t, 400, location)
		}},
		{"If Upload-Defer-Length contains any other value than 1 the server should return 400", "", func(t *testing.T, s *site) {
			for _, value := range []string{"0", "2", "true", "1\nUpload-Defer-Length: 1"} {
				create(t, s, aText+"Upload-Defer-Length: "+value+"\n", "").want(t, 400, location)
			}
		}},
		{"As long as the length is not known, the Server MUST set Upload-Defer-Length: 1; once set it MUST NOT be changed", "", func(t *testing.T, s *site) {
			address := create(t, s, aText+"Upload-Defer-Length: 1\n", "").want(t, 201, "").header.Get(location)
			s.offset(t, address, 0).want(t, 200, "Upload-Defer-Length: 1\nUpload-Length")
			s.patch(t, address, 0, "he", "").want(t, 204, "")
			s.offset(t, address, 2).want(t, 200, "Upload-Defer-Length: 1\nUpload-Length")
			s.patch(t, address, 2, "l", "Upload-Length: 1\n").want(t, 400, "")
			s.patch(t, address, 2, "l", "Upload-Length: 3000000000\n").want(t, 413, "")
			s.patch(t, address, 2, "l", "Upload-Length: -5\n").want(t, 400, "")
			s.offset(t, address, 2).want(t, 200, "Upload-Defer-Length: 1\nUpload-Length")
			s.patch(t, address, 2, "l", "Upload-Length: 5\n").want(t, 204, "Upload-Offset: 3")
			s.offset(t, address, 3).want(t, 200, "Upload-Defer-Length\nUpload-Length: 5")
			s.patch(t, address, 3, "lo", "Upload-Length: 6\n").want(t, 400, "")
			s.patch(t, address, 3, "lo", "Upload-Length: 5\n").want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
			s.itemIs(t, "hello")
		}},
		{"The Client MUST set the length in the next PATCH, once it is known: also without bytes", "", func(t *testing.T, s *site) {
			address := create(t, s, aText+"Upload-Defer-Length: 1\n"+tusBody, "hello").want(t, 201, "Upload-Offset: 5\nMedia-Filename").header.Get(location)
			s.patch(t, address, 5, "", "Upload-Length: 5\n").want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
		}},
		{"Upload-Length MAY be 0: such an upload is immediately complete", "", func(t *testing.T, s *site) {
			got := create(t, s, aText+"Upload-Length: 0\n", "").want(t, 201, "Media-Filename: a.txt\nMedia-Full-Path: "+origin+"/static/file/content/a.txt")
			s.offset(t, got.header.Get(location), 0).want(t, 200, "Upload-Length: 0\nMedia-Filename: a.txt")
			s.itemIs(t, "")
		}},
		{"HEAD MUST include Upload-Metadata and its value as specified by the Client", "", func(t *testing.T, s *site) {
			value := "filename YS50eHQ=,is_confidential, more  ,Other YQ=="
			address := s.create(t, 1, "Upload-Metadata: "+strings.Replace(value, "more  ", "more ", 1)+"\n")
			want := "Upload-Metadata: " + strings.Replace(value, "more  ", "more ", 1)
			s.offset(t, address, 0).want(t, 200, want)
			s.patch(t, address, 0, "x", "").want(t, 204, "")
			s.offset(t, address, 1).want(t, 200, want)
		}},
		{"Upload-Metadata MUST consist of pairs; keys MUST NOT be empty, all keys MUST be unique, values MUST be Base64", "", func(t *testing.T, s *site) {
			for _, value := range []string{
				"filename a.txt", "filename YS50eHQ", "filename  YS50eHQ=", "filename YS50eHQ=,", ",filename YS50eHQ=", "filename YS50eHQ=,, a YQ==",
				"filename YS50eHQ=,filename YS50eHQ=", "filename YS50eHQ=,a,a", "filename YS50eHQ= YQ==", "filename\tYS50eHQ=", "filename=YS50eHQ=",
				"filename YS50eHQ=\nUpload-Metadata: filename YQ==", "filename YS50eHQ_", "filename YS50eHQ=,\xff YQ==", "filename YS50eHQ=,a\x01 YQ==", "",
				"name", "filename ,name ", "filename YS50eHQ=,x " + strings.Repeat("A", 8<<10),
			} {
				create(t, s, "Upload-Length: 1\nUpload-Metadata: "+value+"\n", "").want(t, 400, location)
			}
			create(t, s, "Upload-Length: 1\n", "").want(t, 400, location)
		}},
		{"Upload-Metadata in several headers is one; a name is decoded as senders encode it", "", func(t *testing.T, s *site) {
			for name, want := range map[string]string{"\xe9.txt": "e.txt", "=?utf-8?B?xJtzLnR4dA==?=": "es.txt"} {
				more := "Upload-Metadata: more YQ==\n"
				address := s.create(t, 1, more+metadata("filename", name))
				s.offset(t, address, 0).want(t, 200, "Upload-Metadata: more YQ==,"+strings.TrimSpace(strings.TrimPrefix(metadata("filename", name), "Upload-Metadata: ")))
				s.patch(t, address, 0, "x", "").want(t, 204, "Media-Filename: "+want)
			}
		}},
		{"If the length exceeds the maximum the Server MUST respond with 413", "", func(t *testing.T, s *site) {
			for _, length := range []string{"2147483649", "9223372036854775807", "9223372036854775808", "99999999999999999999999"} {
				create(t, s, aText+"Upload-Length: "+length+"\n", "").want(t, 413, location)
				create(t, s, "Upload-Concat: partial\nUpload-Length: "+length+"\n", "").want(t, 413, location)
			}
			create(t, s, metadata("filename", "a.txt", "alias", "small")+"Upload-Length: 11\n", "").want(t, 413, location)
		}},
		{"creation-with-upload: the Server MUST include Upload-Offset after applying the accepted bytes", "", func(t *testing.T, s *site) {
			got := create(t, s, aText+tusBody+"Upload-Length: 11\n", "hello ").want(t, 201, "Upload-Offset: 6\nMedia-Filename")
			address := got.header.Get(location)
			s.offset(t, address, 6)
			s.patch(t, address, 6, "world", "").want(t, 204, "Media-Filename: a.txt")
			s.itemIs(t, "hello world")
			create(t, s, metadata("filename", "b.txt")+tusBody+"Upload-Length: 1\n", "b").want(t, 201, "Upload-Offset: 1\nMedia-Filename: b.txt")
		}},
		{"creation-with-upload: the Client MUST include the Content-Type", "", func(t *testing.T, s *site) {
			create(t, s, aText+"Upload-Length: 11\n", "hello ").want(t, 415, location)
		}},
		{"creation-with-upload: a creation that fails with its bytes leaves nothing", "", func(t *testing.T, s *site) {
			create(t, s, aText+tusBody+"Upload-Length: 3\n", "hello").want(t, 413, location)
			create(t, s, aText+tusBody+"Upload-Length: 5\n"+sha1Of("other"), "hello").want(t, 460, location)
			create(t, s, aText+tusBody+"Upload-Length: 5\nUpload-Checksum: md5 AAAA\n", "hello").want(t, 400, location)
			create(t, s, aText+tusBody+"Upload-Length: 5\nContent-Encoding: gzip\n", "hello").want(t, 415, location)
			if left := s.objects(t); len(left) != 0 {
				t.Errorf("%d objects are left", len(left))
			}
		}},
		{"expiration: Upload-Expires MUST be included in every PATCH and POST response, in the datetime format", "", func(t *testing.T, s *site) {
			got := create(t, s, aText+"Upload-Length: 2\n", "")
			address := got.header.Get(location)
			for i, got := range []*reply{got, s.patch(t, address, 0, "a", ""), s.offset(t, address, 1), s.patch(t, address, 1, "b", "")} {
				if at, err := time.Parse(http.TimeFormat, got.header.Get("Upload-Expires")); err != nil || at.Before(noon.Add(23*time.Hour)) {
					t.Errorf("%d: Upload-Expires %q", i, got.header.Get("Upload-Expires"))
				}
			}
		}},
		{"expiration: PATCH against an expired upload SHOULD be 404", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 0, "he", "").want(t, 204, "")
			s.passed.Store(int64(200 * 365 * 24 * time.Hour)) // behind the times of the objects, whatever the clock
			s.patch(t, address, 2, "llo", "").want(t, 404, "Upload-Offset")
			s.send(t, http.MethodHead, address, "", "").want(t, 404, "Upload-Offset")
			s.send(t, http.MethodDelete, address, "", "").want(t, 404, "")
		}},
	})
}
