package mediahttp_test

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestRightToUpload: an account without the right stores nothing in any way, and gets no ticket.
func TestRightToUpload(t *testing.T) {
	t.Parallel()
	body := form(file("a.txt", "text"))
	create := tusHeader + "Upload-Length: 4\n" + metadata("filename", "a.txt")
	run(t, may("list", "delete"), []httpCase{
		{Name: "upload", Target: filePath, Header: multipart + bearer, Body: body, Status: 403, Has: "the account may not upload items"},
		{Name: "image", Target: imagePath, Header: multipart + bearer, Body: body, Status: 403, Has: "the right upload"},
		{Name: "resumable", Method: http.MethodPost, Target: filePath + "/resumable", Header: create, Status: 403, Has: "upload"},
		{Name: "resumable by HEAD", Method: http.MethodHead, Target: filePath + "/resumable/x", Header: tusHeader, Status: 403},
		{Name: "ticket", Target: ticketPath, Header: urlencoded + bearer, Body: "kind=file", Status: 403, Has: "the right upload"},
		{Name: "without a token", Target: filePath, Header: multipart, Body: body, Status: 401},
	})
	for _, rights := range [][]string{nil, {"upload"}, {"sign", "upload"}} {
		uploadCase{Name: "may", Parts: []part{file("a.txt", "text")}, Want: []string{"file/content/a.txt"}}.Run(t, may(rights...))
	}
}

// TestRightIsLost: an account that loses the right while its files are received stores nothing.
func TestRightIsLost(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	body := form(file("a.txt", "text"))
	got := s.Upload(t, s.Token(t), meanwhile(body, func() {
		changed := account()
		changed.Rights = []access.Right{access.List}
		s.Reload(s.Service(t, media.Limits{}, changed))
	}))
	if _, stored := s.Stored(t, "file/content/a.txt"); got.Status != http.StatusUnauthorized || stored {
		t.Errorf("%+v, stored: %t", got, stored)
	}
}
