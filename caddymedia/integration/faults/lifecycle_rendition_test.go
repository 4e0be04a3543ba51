package faults_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// renditionConfig replaces images, which have renditions of this width.
func renditionConfig(width int) string {
	return "tokens memory\n" + site.Account + fmt.Sprintf(`
storage keep {
	driver local $ROOT
	sub_folder_format /
	overwrite_strategy overwrite
}
image_alias content {
	storage keep
	webp
	negotiate on
	rendition soon {
		width %d
		eager on
	}
	rendition later {
		width %[1]d
		format webp
	}
}
`, width)
}

// TestRenditionsAfterKill kills a Caddy while clients replace images and fetch their renditions.
// After each restart, with another size, every rendition is that of the present image.
func TestRenditionsAfterKill(t *testing.T) {
	t.Parallel()
	const (
		rounds = 8
		names  = 4
	)
	c := site.NewChild(t)
	for round := range rounds {
		width := 20 + round
		c.Start(renditionConfig(width))
		client := c.HTTP1()
		token := client.MustLogin(t)
		checkRenditions(t, client, names, width)
		ctx, cancel := context.WithCancel(t.Context())
		var clients sync.WaitGroup
		stored := make(chan struct{}, 1000)
		for i := range names {
			client := c.HTTP1()
			clients.Go(func() { replaceAndFetch(ctx, t, client, token, fmt.Sprintf("%d.png", i), stored) })
		}
		for range names {
			<-stored
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // a random moment
		c.Kill()
		cancel()
		clients.Wait()
	}
	c.Start(renditionConfig(50))
	checkRenditions(t, c.HTTP1(), names, 50)
}

// replaceAndFetch replaces an image and fetches its renditions until Caddy is killed.
func replaceAndFetch(ctx context.Context, t *testing.T, client *site.Client, token, name string, stored chan<- struct{}) {
	for ctx.Err() == nil {
		c := color.NRGBA{uint8(rand.IntN(256)), uint8(rand.IntN(256)), uint8(rand.IntN(256)), 255}
		form := site.ImageForm(name, sample.EncodePNG(t, sample.Plain(100, 100, c)))
		r, err := client.SendImage(ctx, token, strings.NewReader(form))
		if err != nil {
			return
		}
		if r.Status != http.StatusOK {
			t.Errorf("replacing an image: %v", r)
			return
		}
		select {
		case stored <- struct{}{}:
		default:
		}
		for _, rendition := range []string{"soon", "later"} {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, client.Base+"/static/img/content@"+rendition+"/"+name, http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			answer, err := client.Do(req)
			if err != nil {
				return
			}
			if err := answer.Body.Close(); err != nil {
				return
			}
		}
	}
}

// checkRenditions compares the colours of renditions with those of their images.
func checkRenditions(t *testing.T, client *site.Client, names, width int) {
	t.Helper()
	for i := range names {
		address := fmt.Sprintf("%s/static/img/content/%d.png", client.Base, i)
		img := client.FetchURL(t, address)
		if img.Status == http.StatusNotFound {
			continue // before the first round
		}
		c := color.NRGBAModel.Convert(sample.Decode(t, img.Body).At(0, 0)).(color.NRGBA)
		for _, rendition := range []string{"soon", "later"} {
			address := fmt.Sprintf("%s/static/img/content@%s/%d.png", client.Base, rendition, i)
			site.WantRendition(t, client, address, image.Pt(width, width), c)
		}
	}
}
