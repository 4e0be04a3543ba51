package mediahttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
)

// withVersions is a site with an item of an alias that overwrites, which has the variables $TAG,
// $TIME and $BEFORE, and one of an alias that does not.
func withVersions(t *testing.T) *site {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts[someKey].May = []string{"upload", "delete", "move", "replace"}
		c.ImageAliases["over"] = &media.ImageAlias{AliasOptions: media.AliasOptions{Storage: "replacing"}, WebP: &media.WebP{}}
	})
	info := s.put(t, "file/replacing/a.txt", "old")
	s.put(t, "file/one/a.txt", "old")
	s.vars = []string{
		"$TAG", info.ETag, "$TIME", info.ModTime.UTC().Format(http.TimeFormat),
		"$BEFORE", info.ModTime.Add(-time.Hour).UTC().Format(http.TimeFormat),
	}
	return s
}

// TestPutCondition: a PUT is carried out only if its conditions hold.
func TestPutCondition(t *testing.T) {
	t.Parallel()
	const there, free, append = putPath + "replacing/a.txt", putPath + "replacing/b.txt", putPath + "one/a.txt"
	for _, c := range []struct {
		target, condition string
		status            int
	}{
		{there, "If-None-Match: *", 412},
		{there, "If-None-Match: $TAG", 412},
		{there, `If-None-Match: "x", W/$TAG`, 412},
		{there, `If-None-Match: "x"` + "\nIf-None-Match: $TAG", 412},
		{there, `If-None-Match: "x"`, 201},
		{there, "If-Match: $TAG", 201},
		{there, `If-Match: "x", $TAG`, 201},
		{there, "If-Match: *", 201},
		{there, `If-Match: "x"`, 412},
		{there, "If-Match: W/$TAG", 412},
		{there, "If-Match: x", 400},
		{there, "If-Match: $TAG\nIf-None-Match: *", 412},
		{there, "If-Unmodified-Since: $TIME", 201},
		{there, "If-Unmodified-Since: $BEFORE", 412},
		{there, "If-Unmodified-Since: yesterday", 201},
		{there, "If-Match: $TAG\nIf-Unmodified-Since: $BEFORE", 201},
		{there, "If-Modified-Since: $TIME", 201},
		{free, "If-None-Match: *", 201},
		{free, "If-Match: *", 412},
		{free, "If-Match: $TAG", 412},
		{free, "If-Unmodified-Since: $BEFORE", 201},
		{append, "If-None-Match: *", 412},
		{append, `If-Match: "x"`, 412},
		{append, "If-Match: *", 201},
		{putPath + "one/b.txt", "If-None-Match: *", 201},
		{putPath + "none/b.txt", "If-None-Match: *", 400},
	} {
		httpCase{
			name: c.target + " " + c.condition, method: http.MethodPut, target: c.target, header: bearer + c.condition, body: "new", status: c.status,
		}.run(t, withVersions)
	}
	s := withVersions(t)
	image := httpCase{method: http.MethodPut, target: "/api/upload/image/over/a.png", header: bearer + "If-None-Match: *", body: samples["png"], status: 201, has: ".webp"}
	image.check(t, s)
	image.status, image.has = 412, "condition"
	image.check(t, s)
	image.header, image.status, image.has = bearer+"If-Match: *", 201, ".webp"
	image.check(t, s)
}

// TestPutConditionUnread: the body of a request whose condition does not hold is not read.
func TestPutConditionUnread(t *testing.T) {
	t.Parallel()
	s := withVersions(t)
	body, w := strings.NewReader("new"), httptest.NewRecorder()
	r := s.request(t, http.MethodPut, putPath+"replacing/a.txt", bearer+"If-None-Match: *", "new")
	r.Body = io.NopCloser(body)
	s.handler.ServeHTTP(w, r)
	if w.Code != http.StatusPreconditionFailed || body.Len() != 3 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestFormCondition: a form has no conditions.
func TestFormCondition(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"If-None-Match: *", `If-Match: "x"`, "If-Unmodified-Since: yesterday"} {
		httpCase{
			name: condition, target: filePath, header: multipart + bearer + condition, body: form(file("a.txt", "x")), status: 400, has: "conditions",
		}.run(t, aSite)
	}
}

// TestItemConditions: changes of an item keep all conditions.
func TestItemConditions(t *testing.T) {
	t.Parallel()
	const target = itemsPath + "file/replacing/a.txt"
	for _, condition := range []string{"If-None-Match: *", "If-None-Match: $TAG", "If-Unmodified-Since: $BEFORE"} {
		run(t, withVersions, []httpCase{
			{name: "DELETE " + condition, method: http.MethodDelete, target: target, header: bearer + condition, status: 412},
			{name: "POST " + condition, method: http.MethodPost, target: target, header: bearer + urlencoded + condition, body: "to=b.txt", status: 412},
		})
	}
	run(t, withVersions, puts(
		httpCase{name: "PUT", target: target, header: bearer + "If-Match: *\nIf-None-Match: $TAG", body: "x", status: 412},
		httpCase{name: "PUT of another", target: target, header: bearer + "If-Match: *\n" + `If-None-Match: "x"`, body: "x", status: 200},
	))
}
