package tus_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

// TestConcatenation checks the sentences of tus 1.0.0, "Concatenation".
func TestConcatenation(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"The partial uploads MUST be concatenated as per the order specified in the list", "", func(t *testing.T, s *site) {
			a, b := s.part(t, "hello"), s.part(t, " world")
			got := s.final(t, aText, a, b).want(t, 201, "Media-Filename: a.txt")
			s.itemIs(t, "hello world")
			s.offset(t, got.header.Get(location), 11).want(t, 200, "Upload-Length: 11\nMedia-Filename: a.txt")
		}},
		{"HEAD MUST include Upload-Concat as received; for a partial upload also Upload-Offset and Upload-Length", "", func(t *testing.T, s *site) {
			a := s.create(t, 2, "Upload-Concat: partial\n")
			s.offset(t, a, 0).want(t, 200, "Upload-Concat: partial\nUpload-Length: 2")
			s.patch(t, a, 0, "ab", "").want(t, 204, "Media-Filename")
			s.offset(t, a, 2).want(t, 200, "Upload-Concat: partial\nUpload-Length: 2\nMedia-Filename")
			list := "final;" + a + " " + origin + a
			got := s.final(t, aText, a, origin+a).want(t, 201, "")
			s.offset(t, got.header.Get(location), 4).want(t, 200, "Upload-Concat: "+list)
			s.itemIs(t, "abab")
		}},
		{"The same partial upload MAY be present multiple times", "", func(t *testing.T, s *site) {
			a, b := s.part(t, "a"), s.part(t, "b")
			s.final(t, aText, a, b, a, a).want(t, 201, "")
			s.itemIs(t, "abaa")
		}},
		{"300 parts", "", func(t *testing.T, s *site) {
			a, list := s.part(t, "a"), ""
			for range 299 {
				list += " https://media.example.com/some/prefix" + a
			}
			list += " " + s.part(t, strings.Repeat("b", 299))
			s.final(t, aText, list+" "+a).want(t, 400, location)
			got := s.final(t, aText, list[1:]).want(t, 201, "Media-Filename: a.txt")
			s.offset(t, got.header.Get(location), 598)
			s.itemIs(t, strings.Repeat("a", 299)+strings.Repeat("b", 299))
		}},
		{"a part that is repeated too often", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			s.final(t, aText, a, a, a).want(t, 400, location)
			s.final(t, aText, a, a).want(t, 201, "Media-Filename: a.txt")
		}},
		{"URLs MAY be absolute or relative", "", func(t *testing.T, s *site) {
			a, b, c := s.part(t, "a"), s.part(t, "b"), s.part(t, "c")
			s.final(t, aText, origin+a, b, strings.TrimPrefix(c, resumablePath+"/")).want(t, 201, "")
			s.itemIs(t, "abc")
		}},
		{"The Client MUST NOT include Upload-Length in the final upload creation", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			s.final(t, aText+"Upload-Length: 1\n", a).want(t, 400, location)
			s.final(t, aText+"Upload-Defer-Length: 1\n", a).want(t, 400, location)
			s.send(t, http.MethodPost, resumablePath, "Upload-Concat: final;"+a+"\n"+aText+tusBody, "x").want(t, 400, location)
			s.final(t, aText, a).want(t, 201, "")
		}},
		{"concatenation-unfinished is not announced: all parts must be complete", "", func(t *testing.T, s *site) {
			a, whole := s.create(t, 2, "Upload-Concat: partial\n"), s.create(t, 1, aText)
			deferred := s.send(t, http.MethodPost, resumablePath, "Upload-Concat: partial\nUpload-Defer-Length: 1\n", "").header.Get(location)
			image := s.send(t, http.MethodPost, imagesPath, "Upload-Concat: partial\nUpload-Length: 0\n", "").header.Get(location)
			for _, part := range []string{a, whole, deferred, image, "x", "", ";", "/", "%", a + "/..", a + "?", "http://[", a + "\xff", a + "\x01"} {
				s.final(t, aText, part).want(t, 400, location)
			}
			s.patch(t, a, 0, "a", "").want(t, 204, "")
			s.final(t, aText, a).want(t, 400, location)
			s.patch(t, a, 1, "b", "").want(t, 204, "")
			s.final(t, aText, a).want(t, 201, "Media-Filename: a.txt")
		}},
		{"Upload-Concat MUST be partial or final", "", func(t *testing.T, s *site) {
			for _, value := range []string{"Partial", "partial;", "final", "final;", "final; ", "x", "partial\nUpload-Concat: partial"} {
				s.send(t, http.MethodPost, resumablePath, aText+"Upload-Length: 1\nUpload-Concat: "+value+"\n", "").want(t, 400, location)
			}
		}},
		{"The partial uploads' metadata SHALL NOT be transferred to the final upload", "", func(t *testing.T, s *site) {
			a := s.create(t, 0, "Upload-Concat: partial\n"+aText)
			s.final(t, "", a).want(t, 400, location)
			got := s.final(t, metadata("filename", "b.txt"), a).want(t, 201, "Media-Filename: b.txt")
			s.offset(t, got.header.Get(location), 0).want(t, 200, metadata("filename", "b.txt"))
		}},
		{"The Server MUST respond with 403 to PATCH against a final upload", "", func(t *testing.T, s *site) {
			address := s.final(t, aText, s.part(t, "a")).header.Get(location)
			s.patch(t, address, 1, "b", "").want(t, 403, "")
			s.patch(t, address, 1, "", "").want(t, 403, "")
			s.offset(t, address, 1)
			s.itemIs(t, "a")
		}},
		{"A repeated final POST is the same upload, however its parts are written", "", func(t *testing.T, s *site) {
			a, b := s.part(t, "a"), s.part(t, "b")
			first := s.final(t, aText, a, b).want(t, 201, "")
			again := s.final(t, aText, origin+a, b).want(t, 201, "Media-Filename: a.txt\nUpload-Offset: 2")
			if first.header.Get(location) != again.header.Get(location) || len(s.items(t)) != 1 {
				t.Errorf("%q, then %q, and the items %v", first.header, again.header, s.items(t))
			}
			for _, part := range []string{a, b} { // a client may ask for them before it repeats the POST
				s.offset(t, part, 1).want(t, 200, "Upload-Length: 1\nUpload-Concat: partial")
			}
			s.final(t, metadata("filename", "b.txt"), a, b).want(t, 400, location) // the parts were removed
		}},
		{"A repeated final POST of a refused item is refused again", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			got := s.final(t, metadata("filename", "a.zip"), a).want(t, 415, "Media-Filename")
			got.refused(t, 415, "", "a.zip")
			s.final(t, metadata("filename", "a.zip"), a).want(t, 410, "Media-Filename")
		}},
		{"A final upload is not larger than the alias allows", "", func(t *testing.T, s *site) {
			a := s.part(t, "6 byte")
			s.final(t, metadata("filename", "a.txt", "alias", "small"), a, a).want(t, 413, location)
			s.final(t, metadata("filename", "a.txt", "alias", "small"), a).want(t, 201, "")
		}},
	})
}

// TestChecksum checks the sentences of tus 1.0.0, "Checksum" and "Termination".
func TestChecksum(t *testing.T) {
	t.Parallel()
	runRules(t, []rule{
		{"the Server MUST verify the chunk against the checksum", "", func(t *testing.T, s *site) {
			address := s.create(t, 11, aText)
			s.patch(t, address, 0, "hello ", sha1Of("hello ")).want(t, 204, "Upload-Offset: 6")
			sum := sha256.Sum256([]byte("world"))
			s.patch(t, address, 6, "world", "Upload-Checksum: sha256 "+base64.StdEncoding.EncodeToString(sum[:])+"\n").want(t, 204, "Media-Filename: a.txt")
			s.itemIs(t, "hello world")
		}},
		{"460 if the checksums mismatch; the chunk MUST be discarded, and the upload and its offset MUST NOT be updated", "", func(t *testing.T, s *site) {
			address := s.send(t, http.MethodPost, resumablePath, aText+"Upload-Defer-Length: 1\n", "").header.Get(location)
			s.patch(t, address, 0, "hello", sha1Of("hellp")).want(t, 460, "Upload-Offset")
			s.patch(t, address, 0, "hello", "Upload-Length: 5\n"+sha1Of("hellp")).want(t, 460, "Upload-Offset")
			s.patch(t, address, 0, "", sha1Of("x")).want(t, 460, "Upload-Offset")
			s.offset(t, address, 0).want(t, 200, "Upload-Length\nUpload-Defer-Length: 1")
			s.patch(t, address, 0, "hello", "Upload-Length: 3\n"+sha1Of("hello")).want(t, 413, "Upload-Offset")
			s.offset(t, address, 0)
			s.patch(t, address, 0, "hello", "Upload-Length: 5\n"+sha1Of("hello")).want(t, 204, "Upload-Offset: 5\nMedia-Filename: a.txt")
		}},
		{"400 if the algorithm is not supported; the chunk MUST be discarded", "", func(t *testing.T, s *site) {
			address := s.send(t, http.MethodPost, resumablePath, aText+"Upload-Defer-Length: 1\n", "").header.Get(location)
			for _, value := range []string{
				"md5 AAAA", "SHA1 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1", "sha1 ", "sha1 AAAA", "sha1 *", "sha1  qvTGHdzF6KLavt4PO0gs2a6pQ00=",
				"sha256 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=\nUpload-Checksum: sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=",
			} {
				s.patch(t, address, 0, "hello", "Upload-Length: 5\nUpload-Checksum: "+value+"\n").want(t, 400, "Upload-Offset")
			}
			s.offset(t, address, 0).want(t, 200, "Upload-Length")
		}},
		{"DELETE MUST be 204; all future requests SHOULD be 404", "", func(t *testing.T, s *site) {
			address := s.create(t, 5, aText)
			s.patch(t, address, 0, "he", "").want(t, 204, "")
			s.send(t, http.MethodDelete, address, "", "").want(t, 204, "")
			for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPatch, http.MethodDelete} {
				s.send(t, method, address, tusBody+"Upload-Offset: 2\n", "").want(t, 404, "Upload-Offset")
			}
			if left := s.objects(t); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		}},
		{"a part that is removed makes its final upload impossible", "", func(t *testing.T, s *site) {
			a := s.part(t, "a")
			s.send(t, http.MethodDelete, a, "", "").want(t, 204, "")
			s.final(t, aText, a).want(t, 400, location)
		}},
	})
}
