package mediahttp_test

import (
	"image"
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/caddymedia/media"
)

// aSiteOfFormats is a site with two more aliases of images: formats accepts WebP, and renaming
// corrects extensions as well. Both make variants.
func aSiteOfFormats(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, media.Limits{}, func(c *media.Config) {
		for _, name := range []string{"formats", "renaming"} {
			c.ImageAliases[name] = &media.ImageAlias{
				AliasOptions: on("exact"), Formats: []string{"webp"}, RenameMismatched: name == "renaming",
				WebP: new(media.WebP), Negotiate: true,
			}
		}
	})
}

func drawWebP(t *testing.T) string {
	t.Helper()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	file, err := encoder.Encode(t.Context(), image.NewNRGBA(image.Rect(0, 0, 8, 8)), webp.Options{Lossless: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

func TestFormats(t *testing.T) {
	t.Parallel()
	picture := drawWebP(t)
	to := func(alias, name, content string) []part { return []part{field("alias", alias), file(name, content)} }
	for _, c := range []uploadCase{
		{name: "WebP", parts: to("formats", "a.webp", picture), want: []string{"img/formats/a.webp"}},
		{name: "not configured", parts: to("content", "a.webp", picture), status: 415, has: ".webp is not accepted", want: []string{"a.webp"}},
		{name: "mismatch", parts: to("formats", "a.png", picture), status: 415, has: "content is WebP, the name says .png", want: []string{"a.png"}},
		{name: "renamed", parts: to("renaming", "A b.png", picture), want: []string{"img/renaming/A b.webp"}},
		{name: "name of a variant", parts: to("renaming", "a.jpg.png", picture), status: 400, has: "the name of a variant", want: []string{"a.jpg.png"}},
	} {
		c.image().run(t, aSiteOfFormats)
	}
}

// TestRenamed: every way in stores an image with the extension of its content.
func TestRenamed(t *testing.T) {
	t.Parallel()
	s := aSiteOfFormats(t)
	const address = "/api/upload/image/renaming/"
	httpCase{
		name: "PUT", method: http.MethodPut, target: address + "blob", header: bearer, body: samples["png"], status: 201,
		want: "Location: http://example.com/static/img/renaming/blob.png", has: `"filename":"blob.png"`,
	}.check(t, s)
	httpCase{
		name: "PUT of JFIF", method: http.MethodPut, target: "/api/upload/image/content/photo.jfif", header: bearer, body: jpegPicture, status: 201,
		want: "Location: http://example.com/static/img/content/photo.jpg",
	}.check(t, s)
	s.ticket(t, "kind=image&alias=renaming&filename=avatar")
	httpCase{
		name: "ticket", method: http.MethodPost, target: imagePath, header: multipart + ticketBearer,
		body: form(file("x", samples["png"])), status: 200, has: `"filename":"avatar.png"`,
	}.check(t, s)
}

func TestStaticWebP(t *testing.T) {
	t.Parallel()
	s := aSiteOfFormats(t)
	s.put(t, "img/formats/a.webp", drawWebP(t))
	httpCase{
		target: "/static/img/formats/a.webp", header: "Accept: image/png", status: http.StatusOK,
		want: "Content-Type: image/webp\nContent-Disposition\nVary",
	}.check(t, s)
}
