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
		{Name: "WebP", Parts: to("formats", "a.webp", picture), Want: []string{"img/formats/a.webp"}},
		{Name: "not configured", Parts: to("content", "a.webp", picture), Status: 415, Has: ".webp is not accepted", Want: []string{"a.webp"}},
		{Name: "mismatch", Parts: to("formats", "a.png", picture), Status: 415, Has: "content is WebP, the name says .png", Want: []string{"a.png"}},
		{Name: "renamed", Parts: to("renaming", "A b.png", picture), Want: []string{"img/renaming/A b.webp"}},
		{Name: "name of a variant", Parts: to("renaming", "a.jpg.png", picture), Status: 400, Has: "the name of a variant", Want: []string{"a.jpg.png"}},
	} {
		c.Image().Run(t, aSiteOfFormats)
	}
}

// TestRenamed: every way in stores an image with the extension of its content.
func TestRenamed(t *testing.T) {
	t.Parallel()
	s := aSiteOfFormats(t)
	const address = "/api/upload/image/renaming/"
	httpCase{
		Name: "PUT", Method: http.MethodPut, Target: address + "blob", Header: bearer, Body: samples["png"], Status: 201,
		Want: "Location: http://example.com/static/img/renaming/blob.png", Has: `"filename":"blob.png"`,
	}.Check(t, s)
	httpCase{
		Name: "PUT of JFIF", Method: http.MethodPut, Target: "/api/upload/image/content/photo.jfif", Header: bearer, Body: jpegPicture, Status: 201,
		Want: "Location: http://example.com/static/img/content/photo.jpg",
	}.Check(t, s)
	s.Ticket(t, "kind=image&alias=renaming&filename=avatar")
	httpCase{
		Name: "ticket", Method: http.MethodPost, Target: imagePath, Header: multipart + ticketBearer,
		Body: form(file("x", samples["png"])), Status: 200, Has: `"filename":"avatar.png"`,
	}.Check(t, s)
}

func TestStaticWebP(t *testing.T) {
	t.Parallel()
	s := aSiteOfFormats(t)
	s.Put(t, "img/formats/a.webp", drawWebP(t))
	httpCase{
		Target: "/static/img/formats/a.webp", Header: "Accept: image/png", Status: http.StatusOK,
		Want: "Content-Type: image/webp\nContent-Disposition\nVary",
	}.Check(t, s)
}
