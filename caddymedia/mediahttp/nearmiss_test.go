package mediahttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestNearMiss: a path that is almost an endpoint is answered with the endpoint, as JSON that pages
// of listed origins may read. All other paths go to the next handler.
func TestNearMiss(t *testing.T) {
	t.Parallel()
	const (
		ofUpload = `{"success":false,"errors":[{"message":"there is no such address: use `
		ofLogin  = `{"success":false,"message":"there is no such address: use `
		from     = "Origin: " + page + "\n"
		headers  = "Content-Type: application/json\nCache-Control: no-store\nX-Content-Type-Options: nosniff\n"
		allowed  = headers + "Access-Control-Allow-Origin: " + page
	)
	resumablePath := imagePath + "/resumable"
	for path, endpoint := range map[string]string{
		"/api/upload/images":            imagePath,
		"/api/upload/image/":            imagePath,
		"/api/uploads/image":            imagePath,
		"/API/Upload/Image":             imagePath,
		"//api/upload//image":           imagePath,
		"/api/upload/Files/":            filePath,
		"/api/upload/images/resumable":  resumablePath,
		"/api/upload/image/Resumables/": resumablePath,
		"/api/items/images/content":     itemsPath + "image/<alias>",
		"/api/item/image/content/a.jpg": itemsPath + "image/<alias>",
		"/API/Items/Files/content":      itemsPath + "file/<alias>",
		"//api/items//file/one/a.txt":   itemsPath + "file/<alias>",
		"/api/items/files":              itemsPath + "file/<alias>",
		"/api/auth/generatetoken":       tokenPath,
		"/api/auth/generateToken/":      tokenPath,
		"/api/auth/tickets":             ticketPath,
	} {
		has := ofUpload
		if strings.Contains(endpoint, "/auth/") {
			has = ofLogin
		}
		run(t, crossSite(page), []httpCase{
			{name: "POST " + path, method: http.MethodPost, target: origin + path, header: from, status: 404, want: allowed, has: has + endpoint + `"`},
			{name: "GET " + path, target: origin + path, header: from, status: 404, want: allowed, has: has + endpoint + `"`},
		})
	}
	for _, path := range []string{
		"/", "/api", "/api/", "/api/upload", "/api/uploads/", "/api/image", "/api/upload/imagess", "/api/upload/imag", "/api/upload/photo",
		"/api/upload/image/x", "/api/upload/image.php", "/api/auth", "/api/auth/token", "/v1/api/upload/image", "/upload/image", "/ap", "/Api-Docs",
		"/api/x/../upload/image", "/api/items", "/api/items/", "/api/items/video/x", "/api/items/imagesx/content", "/api/x/items/image/content", "/items/image/content", "/static/Img/content/a.jpg",
	} {
		run(t, crossSite(page), []httpCase{
			{name: "POST " + path, method: http.MethodPost, target: path, header: from, status: 404, want: "Content-Type: text/plain; charset=utf-8\nVary"},
		})
	}
	got := preflight(t, crossSite(page)(t), "/api/upload/images", http.MethodPost, page)
	if got.status != http.StatusNoContent || got.header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("preflight request: %d %v", got.status, got.header)
	}
}

// TestNearMissBelowPrefix: the endpoint is named as the client reaches it.
func TestNearMissBelowPrefix(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/media/api/upload/images", strings.NewReader("body"))
	w := httptest.NewRecorder()
	http.StripPrefix("/media", aSite(t).handler).ServeHTTP(w, r)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "use /media/api/upload/image\"") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w.Header().Get("Connection") != "close" {
		t.Error("the connection waits for the body")
	}
}
