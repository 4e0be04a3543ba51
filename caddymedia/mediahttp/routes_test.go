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
	const putUsage = filePath + "/<alias>/<name>"
	for path, endpoint := range map[string]string{
		"/api/upload/images":            imagePath,
		"/api/upload/image/":            imagePath,
		"/api/uploads/image":            imagePath,
		"/API/Upload/Image":             imagePath,
		"//api/upload//image":           imagePath,
		"/api/upload/Files/":            filePath,
		"/api/items/images/content":     itemsPath + "image/<alias>",
		"/api/item/image/content/a.jpg": itemsPath + "image/<alias>",
		"//api/items//file/one/a.txt":   itemsPath + "file/<alias>",
		"/api/items/files":              itemsPath + "file/<alias>",
		"/api/auth/generatetoken":       tokenPath,
		"/api/auth/tickets":             ticketPath,
		"/api/Signs":                    signPath,
		"/api/upload/files/docs/n.txt":  putUsage,
		"/API/upload/file/docs/n.txt":   putUsage,
		"/api/upload/File/docs/a/n.txt": putUsage,
		"/API/upload/file/resumable/x":  filePath + "/resumable",
		"/api/upload/file/Resumable/x":  filePath + "/resumable",
		"/API/upload/file/../docs/n":    putUsage,
	} {
		has := ofUpload
		if strings.Contains(endpoint, "/auth/") || endpoint == signPath {
			has = ofLogin
		}
		run(t, crossSite(page), []httpCase{
			{Name: "POST " + path, Method: http.MethodPost, Target: origin + path, Header: from, Status: 404, Want: allowed, Has: has + endpoint + `"`},
			{Name: "GET " + path, Target: origin + path, Header: from, Status: 404, Want: allowed, Has: has + endpoint + `"`},
		})
	}
	for _, path := range []string{
		"/", "/api", "/api/", "/api/upload", "/api/uploads/", "/api/image", "/api/upload/imagess", "/api/upload/imag", "/api/upload/photo",
		"/api/upload/image/x", "/api/upload/image.php", "/api/auth", "/api/auth/token", "/v1/api/upload/image", "/upload/image", "/ap", "/Api-Docs",
		"/api/x/../upload/image", "/api/items", "/api/items/", "/api/items/video/x", "/api/items/imagesx/content", "/api/x/items/image/content", "/items/image/content", "/static/Img/content/a.jpg",
	} {
		run(t, crossSite(page), []httpCase{
			{Name: "POST " + path, Method: http.MethodPost, Target: path, Header: from, Status: 404, Want: "Content-Type: text/plain; charset=utf-8\nVary"},
		})
	}
	for _, c := range []struct{ method, path, endpoint string }{
		{http.MethodPut, "/api/uploads/file/docs", putUsage},
		{http.MethodPut, "/api/uploads/file/docs/n.txt", putUsage},
		{http.MethodPatch, "/API/upload/file/resumable/x", filePath + "/resumable"},
		{http.MethodPatch, "/api/upload/file/resumables/x", filePath + "/resumable"},
		{http.MethodDelete, "/api/Items/file/one/a.txt", itemsPath + "file/<alias>"},
	} {
		httpCase{
			Name: c.method + " " + c.path, Method: c.method, Target: c.path, Body: "x", Status: 404, Has: ofUpload + c.endpoint + `"`,
		}.Run(t, aSite)
	}
	got := preflight(t, crossSite(page)(t), "/api/upload/images", http.MethodPost, page)
	if got.Status != http.StatusNoContent || got.Header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("preflight request: %d %v", got.Status, got.Header)
	}
}

// TestNearMissBelowPrefix: the endpoint is named as the client reaches it.
func TestNearMissBelowPrefix(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/media/api/upload/images", strings.NewReader("body"))
	w := httptest.NewRecorder()
	http.StripPrefix("/media", aSite(t).Handler).ServeHTTP(w, r)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "use /media/api/upload/image\"") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w.Header().Get("Connection") != "close" {
		t.Error("the connection waits for the body")
	}
}

// TestDotSegments: a path with a dot segment is refused before a caller is authenticated, because a
// matcher in front of the service may take it for another path.
func TestDotSegments(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		filePath + "/resumable/../../../../x", filePath + "/resumable/..", filePath + "/one/../a.txt", filePath + "/%2e/a.txt", filePath + "/x/..%2fa.txt",
		itemsPath + "file/one/../../x", itemsPath + "image/./content", itemsPath + "file/..",
	} {
		for _, method := range []string{http.MethodPut, http.MethodHead, http.MethodGet, http.MethodDelete, http.MethodOptions} {
			r, w := httptest.NewRequestWithContext(t.Context(), method, path, nil), httptest.NewRecorder()
			if handled, err := aSite(t).Handler.Serve(w, r); err != nil || handled && w.Code != http.StatusBadRequest || !handled && method == http.MethodPut {
				t.Errorf("%s %s: handled %t, %d %s, %v", method, path, handled, w.Code, w.Body, err)
			}
		}
	}
}
