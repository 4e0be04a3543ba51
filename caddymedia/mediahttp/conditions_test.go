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
	info := s.Put(t, "file/replacing/a.txt", "old")
	s.Put(t, "file/one/a.txt", "old")
	s.Vars = []string{
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
			Name: c.target + " " + c.condition, Method: http.MethodPut, Target: c.target, Header: bearer + c.condition, Body: "new", Status: c.status,
		}.Run(t, withVersions)
	}
	s := withVersions(t)
	image := httpCase{Method: http.MethodPut, Target: "/api/upload/image/over/a.png", Header: bearer + "If-None-Match: *", Body: samples["png"], Status: 201, Has: ".webp"}
	image.Check(t, s)
	image.Status, image.Has = 412, "condition"
	image.Check(t, s)
	image.Header, image.Status, image.Has = bearer+"If-Match: *", 201, ".webp"
	image.Check(t, s)
}

// TestPutConditionUnread: the body of a request whose condition does not hold is not read.
func TestPutConditionUnread(t *testing.T) {
	t.Parallel()
	s := withVersions(t)
	body, w := strings.NewReader("new"), httptest.NewRecorder()
	r := s.Request(t, http.MethodPut, putPath+"replacing/a.txt", bearer+"If-None-Match: *", "new")
	r.Body = io.NopCloser(body)
	s.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusPreconditionFailed || body.Len() != 3 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestFormCondition: a form has no conditions.
func TestFormCondition(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"If-None-Match: *", `If-Match: "x"`, "If-Unmodified-Since: yesterday"} {
		httpCase{
			Name: condition, Target: filePath, Header: multipart + bearer + condition, Body: form(file("a.txt", "x")), Status: 400, Has: "conditions",
		}.Run(t, aSite)
	}
}

// TestItemConditions: changes of an item keep all conditions.
func TestItemConditions(t *testing.T) {
	t.Parallel()
	const target = itemsPath + "file/replacing/a.txt"
	for _, condition := range []string{"If-None-Match: *", "If-None-Match: $TAG", "If-Unmodified-Since: $BEFORE"} {
		run(t, withVersions, []httpCase{
			{Name: "DELETE " + condition, Method: http.MethodDelete, Target: target, Header: bearer + condition, Status: 412},
			{Name: "POST " + condition, Method: http.MethodPost, Target: target, Header: bearer + urlencoded + condition, Body: "to=b.txt", Status: 412},
		})
	}
	run(t, withVersions, puts(
		httpCase{Name: "PUT", Target: target, Header: bearer + "If-Match: *\nIf-None-Match: $TAG", Body: "x", Status: 412},
		httpCase{Name: "PUT of another", Target: target, Header: bearer + "If-Match: *\n" + `If-None-Match: "x"`, Body: "x", Status: 200},
	))
}
