package mediahttp_test

import (
	"net/http"
	"strings"
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
		{name: "upload", target: filePath, header: multipart + bearer, body: body, status: 403, has: "the account may not upload items"},
		{name: "image", target: imagePath, header: multipart + bearer, body: body, status: 403, has: "the right upload"},
		{name: "resumable", method: http.MethodPost, target: filePath + "/resumable", header: create, status: 403, has: "upload"},
		{name: "resumable by HEAD", method: http.MethodHead, target: filePath + "/resumable/x", header: tusHeader, status: 403},
		{name: "ticket", target: ticketPath, header: urlencoded + bearer, body: "kind=file", status: 403, has: "the right upload"},
		{name: "without a token", target: filePath, header: multipart, body: body, status: 401},
	})
	for _, rights := range [][]string{nil, {"upload"}, {"sign", "upload"}} {
		uploadCase{name: "may", parts: []part{file("a.txt", "text")}, want: []string{"file/content/a.txt"}}.run(t, may(rights...))
	}
}

// TestRightIsLost: an account that loses the right while its files are received stores nothing.
func TestRightIsLost(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	body := form(file("a.txt", "text"))
	status, _, text := s.upload(t, s.token(t), &meanwhile{
		first: strings.NewReader(body[:10]), second: strings.NewReader(body[10:]),
		between: func() {
			changed := account()
			changed.Rights = []access.Right{access.List}
			s.reload(s.service(t, media.Limits{}, changed))
		},
	})
	if _, stored := s.stored(t, "file/content/a.txt"); status != http.StatusUnauthorized || stored {
		t.Errorf("%d %s, stored: %t", status, text, stored)
	}
}
